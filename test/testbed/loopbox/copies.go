package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// source is what a new volume begins as: one of the two, or neither.
type source struct{ volume, snapshot string }

// sourceOf refuses a source that is not there, or that has more than the volume is to have.
func (d *driver) sourceOf(request *csi.CreateVolumeRequest, bytes int64) (source, error) {
	content := request.GetVolumeContentSource()
	if content == nil {
		return source{}, nil
	}
	enough := func(what, id string, size int64) error {
		if bytes < size {
			return status.Errorf(codes.OutOfRange, "%d bytes asked, and %s %s, which is to be copied, has %d", bytes, what, id, size)
		}
		return nil
	}
	switch asked := content.GetType().(type) {
	case *csi.VolumeContentSource_Volume:
		id := asked.Volume.GetVolumeId()
		size, err := d.existing(id)
		if err != nil {
			return source{}, err
		}
		return source{volume: id}, enough("volume", id, size)
	case *csi.VolumeContentSource_Snapshot:
		id := asked.Snapshot.GetSnapshotId()
		found, err := d.store.snapshot(id)
		if err != nil {
			return source{}, status.Error(codes.Internal, err.Error())
		}
		if found == nil {
			return source{}, status.Errorf(codes.NotFound, "there is no snapshot %s on node %s", id, d.node)
		}
		return source{snapshot: id}, enough("snapshot", id, found.Bytes)
	default:
		return source{}, status.Error(codes.InvalidArgument, "volume_content_source: accepted is a volume or a snapshot")
	}
}

// copy makes the file `to` of what the other one has now. Of a file system that is mounted the copy is as after a clean sync, of a device as it is.
func (s *store) copy(ctx context.Context, from, to string) (failed error) {
	device, err := s.device(ctx, from)
	if err != nil {
		return err
	}
	if device != "" {
		thaw, err := freeze(ctx, device)
		if err != nil {
			return err
		}
		defer func() {
			if err := thaw(); failed == nil {
				failed = err
			}
		}()
	}
	return copyFile(ctx, s.file(from), to)
}

func copyFile(ctx context.Context, from, to string) error {
	_, err := command(ctx, "cp", "--sparse=always", "--reflink=auto", from, to)
	return err
}

// freeze holds writes back until the function that it returns is called. A device without a file system only writes out what it holds.
func freeze(ctx context.Context, device string) (func() error, error) {
	nothing := func() error { return nil }
	target, err := fileSystemOn(device)
	if err != nil {
		return nil, err
	}
	if target == "" {
		_, err := command(ctx, "blockdev", "--flushbufs", device)
		return nothing, err
	}
	if _, err := command(ctx, "fsfreeze", "--freeze", target); err != nil {
		return nil, err
	}
	// Also when the request has ended meanwhile.
	return func() error {
		_, err := command(context.WithoutCancel(ctx), "fsfreeze", "--unfreeze", target)
		return err
	}, nil
}

// fileSystemOn is a folder at which the file system of the device is mounted, empty for none.
func fileSystemOn(device string) (string, error) {
	all, err := mounts()
	if err != nil {
		return "", err
	}
	for _, mount := range all {
		if mount.source == device {
			return mount.target, nil
		}
	}
	return "", nil
}

// thawAll ends what an earlier life of the driver left frozen when it was killed during a copy.
func (s *store) thawAll(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(s.dir, "*.img"))
	if err != nil {
		return err
	}
	for _, file := range files {
		name := filepath.Base(file)
		device, err := s.device(ctx, name[:len(name)-len(".img")])
		if err != nil || device == "" {
			continue
		}
		target, err := fileSystemOn(device)
		if err != nil || target == "" {
			continue
		}
		// Refused where it is not frozen.
		if _, err := command(ctx, "fsfreeze", "--unfreeze", target); err == nil {
			fmt.Fprintln(os.Stderr, "loopbox: thawed", target)
		}
	}
	return nil
}
