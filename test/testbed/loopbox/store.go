package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// store keeps volumes as sparse files. Sizes add up to at most its capacity, whatever is written.
type store struct {
	dir      string
	capacity int64
	mutex    sync.Mutex
}

var errFull = errors.New("this node has not that much left")

// isName tells whether volumes and snapshots can be called so: each is a file of that name.
func isName(id string) bool { return id != "" && !strings.ContainsAny(id, "/\x00") }

func (s *store) file(id string) string { return filepath.Join(s.dir, id+".img") }

// size is -1 of a volume that does not exist.
func (s *store) size(id string) (int64, error) {
	info, err := os.Stat(s.file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	return info.Size(), nil
}

// free is what volumes and snapshots leave.
func (s *store) free() (int64, error) {
	left := s.capacity
	for _, pattern := range []string{"*.img", "*.snap"} {
		files, err := filepath.Glob(filepath.Join(s.dir, pattern))
		if err != nil {
			return 0, err
		}
		for _, file := range files {
			if info, err := os.Stat(file); err == nil {
				left -= info.Size()
			}
		}
	}
	return left, nil
}

func (s *store) room(bytes int64) error {
	free, err := s.free()
	if err == nil && bytes > free {
		return fmt.Errorf("%w: %d bytes asked, %d free", errFull, bytes, free)
	}
	return err
}

// create makes the volume unless it is there: of the source, unless that is empty. The file has its name only once it is complete.
func (s *store) create(ctx context.Context, id string, bytes int64, from source, format bool) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.room(bytes); err != nil {
		return err
	}
	partial := s.file(id) + ".partial"
	if err := os.WriteFile(partial, nil, 0o600); err != nil {
		return err
	}
	if from.volume != "" {
		if err := s.copy(ctx, from.volume, partial); err != nil {
			return err
		}
	}
	if from.snapshot != "" {
		if err := copyFile(ctx, s.snapshotFile(from.snapshot), partial); err != nil {
			return err
		}
	}
	if err := os.Truncate(partial, bytes); err != nil {
		return err
	}
	if format && from == (source{}) {
		if err := makeFileSystem(ctx, partial); err != nil {
			return err
		}
	}
	return os.Rename(partial, s.file(id))
}

func (s *store) grow(id string, bytes int64) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	size, err := s.size(id)
	if err != nil || size >= bytes {
		return err
	}
	if free, err := s.free(); err != nil {
		return err
	} else if bytes-size > free {
		return fmt.Errorf("%w: %d bytes more asked, %d free", errFull, bytes-size, free)
	}
	return os.Truncate(s.file(id), bytes)
}

// remove refuses what a loop device still reads from: it may be mounted.
func (s *store) remove(ctx context.Context, id string) error {
	device, err := s.device(ctx, id)
	if err != nil {
		return err
	}
	if device != "" {
		return fmt.Errorf("volume %s is in use by %s", id, device)
	}
	if err := os.Remove(s.file(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// device is the loop device of a volume, empty when it has none.
func (s *store) device(ctx context.Context, id string) (string, error) {
	if size, err := s.size(id); err != nil || size < 0 {
		return "", err
	}
	out, err := command(ctx, "losetup", "--noheadings", "--output", "NAME", "--associated", s.file(id))
	if err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return name, nil
}

// makeFileSystem takes xfs: ext4 grows under a pod only with CAP_SYS_RESOURCE, which machines in containers lack. The three variables let mkfs.xfs
// make one smaller than 300 MiB, as its own test suite does.
func makeFileSystem(ctx context.Context, file string) error {
	mkfs := exec.CommandContext(ctx, "mkfs.xfs", "-q", "-f", file)
	mkfs.Env = append(os.Environ(), "TEST_DIR=small", "TEST_DEV=small", "QA_CHECK_FS=small")
	if out, err := mkfs.CombinedOutput(); err != nil {
		return fmt.Errorf("mkfs.xfs %s: %w: %s", file, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func command(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// mounted is one mount that this process sees.
type mounted struct {
	// Inside the file system: `/` of a whole one.
	root   string
	target string
	// The device of the file system, or a word for one that has none.
	source string
}

// shows tells whether the mount is of a file system on the device, or of the device's own node.
func (m mounted) shows(device string) bool {
	if m.source == device {
		return true
	}
	if filepath.Base(m.root) != filepath.Base(device) {
		return false
	}
	var at, own syscall.Stat_t
	return isDevice(m.target) && syscall.Stat(m.target, &at) == nil && syscall.Stat(device, &own) == nil && at.Rdev == own.Rdev
}

func isDevice(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().Type() == fs.ModeDevice
}

func mounts() ([]mounted, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []mounted
	for _, line := range strings.Split(string(table), "\n") {
		about, device, _ := strings.Cut(line, " - ")
		fields, source := strings.Fields(about), strings.Fields(device)
		if len(fields) > 4 && len(source) > 1 {
			all = append(all, mounted{root: fields[3], target: fields[4], source: source[1]})
		}
	}
	return all, nil
}

// isMounted also of a device node that is bound onto a file.
func isMounted(target string) (bool, error) {
	all, err := mounts()
	return slices.ContainsFunc(all, func(mount mounted) bool { return mount.target == target }), err
}
