package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"time"
)

// burn uses a steady share of CPU and holds memory, so that metrics and limits have something to see.
func burn(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("burn", flag.ContinueOnError)
	cpu := flags.Float64("cpu", 0, "cores to keep busy, for example 0.5")
	memory := flags.Int("memory", 0, "MiB to hold")
	duration := flags.Duration("for", 0, "how long; 0 for no end")
	if err := parse(flags, args, 0, 0); err != nil {
		return err
	}
	if *duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *duration)
		defer cancel()
	}
	held := make([]byte, *memory<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1 // a page that was never written takes no memory
	}
	fmt.Printf("holding %d MiB, using %.2f cores\n", *memory, *cpu)
	for left := *cpu; left > 0; left-- {
		go spin(ctx, math.Min(left, 1))
	}
	<-ctx.Done()
	fmt.Printf("done with %d MiB\n", len(held)>>20)
	return nil
}

// spin keeps one core busy for that share of every 20 ms.
func spin(ctx context.Context, share float64) {
	const period = 20 * time.Millisecond
	for ctx.Err() == nil {
		started := time.Now()
		for time.Since(started) < time.Duration(share*float64(period)) {
		}
		time.Sleep(period - time.Since(started))
	}
}
