package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"syscall"
)

// ficlone is FICLONE of linux/fs.h: the second file gets the blocks of the first one, and none of its own.
const ficlone = 0x40049409

// reflink makes copies of a file that share its blocks, as xfs can: reflink FROM TO...
func reflink(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("reflink", flag.ContinueOnError)
	if err := parse(flags, args, 2, 100); err != nil {
		return err
	}
	from, err := os.Open(flags.Arg(0))
	if err != nil {
		return err
	}
	defer from.Close()
	for _, name := range flags.Args()[1:] {
		to, err := os.Create(name)
		if err != nil {
			return err
		}
		_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, to.Fd(), ficlone, from.Fd())
		if err := to.Close(); err != nil {
			return err
		}
		if failed != 0 {
			return fmt.Errorf("%s cannot share the blocks of %s: %w", name, flags.Arg(0), failed)
		}
	}
	return nil
}
