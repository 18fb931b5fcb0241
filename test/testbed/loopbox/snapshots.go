package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// snapshot is what a volume had at one moment. Its file lies beside the volumes, and needs none of them.
type snapshot struct {
	Volume string    `json:"volume"`
	Bytes  int64     `json:"bytes"`
	At     time.Time `json:"at"`
}

const snapshotEnding = ".snap"

func (s *store) snapshotFile(id string) string { return filepath.Join(s.dir, id+snapshotEnding) }
func (s *store) recordFile(id string) string   { return s.snapshotFile(id) + ".json" }

// snapshot is nil of one that does not exist.
func (s *store) snapshot(id string) (*snapshot, error) {
	if !isName(id) {
		return nil, nil
	}
	if _, err := os.Stat(s.snapshotFile(id)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(s.recordFile(id))
	if err != nil {
		return nil, err
	}
	found := &snapshot{}
	return found, json.Unmarshal(text, found)
}

// take makes the snapshot unless it is there. Its file has its name only once file and record are complete.
func (s *store) take(ctx context.Context, id, volume string, bytes int64) (*snapshot, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if found, err := s.snapshot(id); found != nil || err != nil {
		return found, err
	}
	if err := s.room(bytes); err != nil {
		return nil, err
	}
	made := &snapshot{Volume: volume, Bytes: bytes, At: time.Now()}
	partial := s.snapshotFile(id) + ".partial"
	if err := s.copy(ctx, volume, partial); err != nil {
		return nil, err
	}
	text, err := json.Marshal(made)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.recordFile(id), text, 0o600); err != nil {
		return nil, err
	}
	return made, os.Rename(partial, s.snapshotFile(id))
}

// drop removes the record last: without its file it says nothing.
func (s *store) drop(id string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, file := range []string{s.snapshotFile(id), s.recordFile(id)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// snapshots are the ids of all, sorted.
func (s *store) snapshots() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.dir, "*"+snapshotEnding))
	var ids []string
	for _, file := range files {
		ids = append(ids, strings.TrimSuffix(filepath.Base(file), snapshotEnding))
	}
	slices.Sort(ids)
	return ids, err
}

func (d *driver) CreateSnapshot(ctx context.Context, request *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	id, volume := request.GetName(), request.GetSourceVolumeId()
	if !isName(id) {
		return nil, status.Errorf(codes.InvalidArgument, "name is %q", id)
	}
	found, err := d.store.snapshot(id)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if found == nil {
		bytes, err := d.existing(volume)
		if err != nil {
			return nil, err
		}
		if found, err = d.store.take(ctx, id, volume, bytes); err != nil {
			return nil, failure(err)
		}
	}
	if found.Volume != volume {
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %s is of volume %s", id, found.Volume)
	}
	return &csi.CreateSnapshotResponse{Snapshot: found.of(id)}, nil
}

func (s *snapshot) of(id string) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId: id, SourceVolumeId: s.Volume, SizeBytes: s.Bytes, CreationTime: timestamppb.New(s.At), ReadyToUse: true,
	}
}

func (d *driver) DeleteSnapshot(_ context.Context, request *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	id := request.GetSnapshotId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "snapshot_id is missing")
	}
	if !isName(id) {
		return &csi.DeleteSnapshotResponse{}, nil // none of ours, so it is gone
	}
	if err := d.store.drop(id); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

// ListSnapshots counts by position: a token is the place of the next one.
func (d *driver) ListSnapshots(_ context.Context, request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	ids, err := d.store.snapshots()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	var all []*csi.ListSnapshotsResponse_Entry
	for _, id := range ids {
		found, err := d.store.snapshot(id)
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		isAsked := (request.GetSnapshotId() == "" || request.GetSnapshotId() == id) &&
			found != nil && (request.GetSourceVolumeId() == "" || request.GetSourceVolumeId() == found.Volume)
		if isAsked {
			all = append(all, &csi.ListSnapshotsResponse_Entry{Snapshot: found.of(id)})
		}
	}
	first := 0
	if token := request.GetStartingToken(); token != "" {
		if first, err = strconv.Atoi(token); err != nil || first < 0 || first > len(all) {
			return nil, status.Errorf(codes.Aborted, "starting_token is %q: accepted is one of an earlier answer", token)
		}
	}
	end, next := len(all), ""
	if most := int(request.GetMaxEntries()); most > 0 && first+most < end {
		end = first + most
		next = strconv.Itoa(end)
	}
	return &csi.ListSnapshotsResponse{Entries: all[first:end], NextToken: next}, nil
}
