// Workload is what test pods run: one small static program, a sub-command for each thing that a test wants a container to do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A command ends early, without an error, when ctx ends: SIGTERM stops a container at once.
type command func(ctx context.Context, args []string) error

// exitCode ends the program with that code and no message.
type exitCode int

func (code exitCode) Error() string { return fmt.Sprintf("exit code %d", int(code)) }

func commands() map[string]command {
	return map[string]command{
		"serve":    serve,
		"get":      get,
		"udp-echo": udpEcho,
		"udp-send": udpSend,
		"dns":      dns,
		"burn":     burn,
		"write":    write,
		"reflink":  reflink,
		"remove":   remove,
		"cat":      cat,
		"echo":     echo,
		"env":      env,
		"sleep":    sleep,
		"print":    printLines,
		"exit":     exit,
		"pause":    pause,
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	all := commands()
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if _, known := all[name]; !known && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	run, known := all[name]
	if !known {
		fmt.Fprintf(os.Stderr, "usage: workload %s [FLAGS] [ARGUMENTS]\n", strings.Join(names(all), "|"))
		os.Exit(2)
	}
	err := run(ctx, args)
	var code exitCode
	switch {
	case errors.As(err, &code):
		os.Exit(int(code))
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func names(all map[string]command) []string {
	var sorted []string
	for name := range all {
		sorted = append(sorted, name)
	}
	sort.Strings(sorted)
	return sorted
}

// parse reads the flags of one command and checks that between least and most arguments are left.
func parse(flags *flag.FlagSet, args []string, least, most int) error {
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp
	}
	if n := flags.NArg(); n < least || n > most {
		return fmt.Errorf("takes %d to %d arguments, got %d", least, most, n)
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func pause(ctx context.Context, _ []string) error {
	<-ctx.Done()
	return nil
}

func echo(_ context.Context, args []string) error {
	fmt.Println(strings.Join(args, " "))
	return nil
}

func env(context.Context, []string) error {
	for _, pair := range os.Environ() {
		fmt.Println(pair)
	}
	return nil
}

// sleep takes seconds or a Go duration; none means until stopped.
func sleep(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return pause(ctx, nil)
	}
	d, err := time.ParseDuration(args[0])
	if err != nil {
		seconds, numberErr := strconv.ParseFloat(args[0], 64)
		if numberErr != nil {
			return err
		}
		d = time.Duration(seconds * float64(time.Second))
	}
	wait(ctx, d)
	return nil
}

// cat copies files, or standard input as it comes, to standard output: what an interactive exec talks to.
func cat(ctx context.Context, args []string) error {
	for _, name := range args {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		os.Stdout.Write(content)
	}
	if len(args) > 0 {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(os.Stdout, os.Stdin)
		done <- err
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-done:
		return err
	}
}

// write appends a line to a file, for instance on a volume, -times as often, and keeps running with -hold.
func write(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("write", flag.ContinueOnError)
	hold := flags.Bool("hold", false, "keep running afterwards")
	times := flags.Int("times", 1, "how often the line is written")
	if err := parse(flags, args, 1, 1000); err != nil {
		return err
	}
	name, text := flags.Arg(0), strings.Join(flags.Args()[1:], " ")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(file, strings.Repeat(text+"\n", *times)); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	fmt.Printf("wrote %q to %s\n", text, name)
	if *hold {
		<-ctx.Done()
	}
	return nil
}

// printLines prints numbered lines: what log tests read.
func printLines(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("print", flag.ContinueOnError)
	interval := flags.Duration("interval", time.Second, "time between lines")
	count := flags.Int("count", 0, "how many lines; 0 for no end")
	hold := flags.Bool("hold", false, "keep running after the last line")
	if err := parse(flags, args, 0, 1000); err != nil {
		return err
	}
	text := "line"
	if flags.NArg() > 0 {
		text = strings.Join(flags.Args(), " ")
	}
	for i := 1; *count == 0 || i <= *count; i++ {
		fmt.Printf("%s %d\n", text, i)
		if i != *count && !wait(ctx, *interval) {
			return nil
		}
	}
	if *hold {
		<-ctx.Done()
	}
	return nil
}

// remove deletes files.
func remove(_ context.Context, args []string) error {
	for _, name := range args {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

func exit(ctx context.Context, args []string) error {
	// `exit CODE --after 1s` reads better than the flag package's flags-first order: accept both.
	if len(args) > 1 && !strings.HasPrefix(args[0], "-") {
		args = append(args[1:], args[0])
	}
	flags := flag.NewFlagSet("exit", flag.ContinueOnError)
	after := flags.Duration("after", 0, "how long to run before")
	if err := parse(flags, args, 1, 1); err != nil {
		return err
	}
	code, err := strconv.Atoi(flags.Arg(0))
	if err != nil || code < 0 || code > 255 {
		return fmt.Errorf("the exit code is a number from 0 to 255, got %q", flags.Arg(0))
	}
	if wait(ctx, *after) {
		return exitCode(code)
	}
	return nil
}
