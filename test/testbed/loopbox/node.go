package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node, AccessibleTopology: d.topology()}, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	var capabilities []*csi.NodeServiceCapability
	for _, kind := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		capabilities = append(capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: kind}},
		})
	}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: capabilities}, nil
}

func missing(fields ...[2]string) error {
	for _, field := range fields {
		if field[1] == "" {
			return status.Errorf(codes.InvalidArgument, "%s is missing", field[0])
		}
	}
	return nil
}

// ensureDevice attaches the volume's file to a loop device, once.
func (d *driver) ensureDevice(ctx context.Context, id string) (string, error) {
	if device, err := d.store.device(ctx, id); err != nil || device != "" {
		return device, err
	}
	out, err := command(ctx, "losetup", "--find", "--show", d.store.file(id))
	return strings.TrimSpace(out), err
}

// NodeStageVolume mounts a file system, or attaches a device that is published as it is.
func (d *driver) NodeStageVolume(ctx context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	id, target := request.GetVolumeId(), request.GetStagingTargetPath()
	if err := missing([2]string{"volume_id", id}, [2]string{"staging_target_path", target}); err != nil {
		return nil, err
	}
	if err := checkCapabilities([]*csi.VolumeCapability{request.GetVolumeCapability()}); err != nil {
		return nil, err
	}
	if _, err := d.existing(id); err != nil {
		return nil, err
	}
	if request.GetVolumeCapability().GetBlock() != nil {
		if _, err := d.ensureDevice(ctx, id); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		return &csi.NodeStageVolumeResponse{}, nil
	}
	// A copy has the UUID of its source, and may be larger than the file system on it.
	if err := d.mount(ctx, target, append([]string{"-t", "xfs", "-o", options("loop,nouuid", request.GetVolumeCapability())}, d.store.file(id))); err != nil {
		return nil, err
	}
	if _, err := command(ctx, "xfs_growfs", target); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

func options(first string, capability *csi.VolumeCapability) string {
	return strings.Join(append([]string{first}, capability.GetMount().GetMountFlags()...), ",")
}

// mount does nothing when something is mounted there already. The loop device of `-o loop` goes with its last mount.
func (d *driver) mount(ctx context.Context, target string, arguments []string) error {
	mounted, err := isMounted(target)
	if err == nil && !mounted {
		if err = os.MkdirAll(target, 0o755); err == nil {
			_, err = command(ctx, "mount", append(arguments, target)...)
		}
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func (d *driver) unmount(ctx context.Context, target string) error {
	mounted, err := isMounted(target)
	if err == nil && mounted {
		_, err = command(ctx, "umount", target)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func (d *driver) NodeUnstageVolume(ctx context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	id, target := request.GetVolumeId(), request.GetStagingTargetPath()
	if err := missing([2]string{"volume_id", id}, [2]string{"staging_target_path", target}); err != nil {
		return nil, err
	}
	if err := d.unmount(ctx, target); err != nil {
		return nil, err
	}
	if !isName(id) {
		return &csi.NodeUnstageVolumeResponse{}, nil
	}
	device, err := d.store.device(ctx, id)
	if err == nil && device != "" {
		_, err = command(ctx, "losetup", "--detach", device)
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (d *driver) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	id, target, staged := request.GetVolumeId(), request.GetTargetPath(), request.GetStagingTargetPath()
	if err := missing([2]string{"volume_id", id}, [2]string{"target_path", target}, [2]string{"staging_target_path", staged}); err != nil {
		return nil, err
	}
	if err := checkCapabilities([]*csi.VolumeCapability{request.GetVolumeCapability()}); err != nil {
		return nil, err
	}
	if _, err := d.existing(id); err != nil {
		return nil, err
	}
	d.publishing.Lock()
	defer d.publishing.Unlock()
	if request.GetVolumeCapability().GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		other, err := d.publishedElsewhere(ctx, id, staged, target)
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		if other != "" {
			return nil, status.Errorf(codes.FailedPrecondition, "volume %s has a single writer, which has it at %s", id, other)
		}
	}
	how := "bind"
	if request.GetReadonly() {
		how = "bind,ro"
	}
	if request.GetVolumeCapability().GetBlock() == nil {
		if err := d.mount(ctx, target, []string{"-o", how, staged}); err != nil {
			return nil, err
		}
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := d.publishDevice(ctx, id, target); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// publishedElsewhere is where the volume is mounted besides the two targets, empty for nowhere. The kernel's mounts say it: they outlive the driver.
func (d *driver) publishedElsewhere(ctx context.Context, id, staged, target string) (string, error) {
	device, err := d.store.device(ctx, id)
	if err != nil || device == "" {
		return "", err
	}
	all, err := mounts()
	if err != nil {
		return "", err
	}
	for _, mount := range all {
		if mount.target != staged && mount.target != target && mount.shows(device) {
			return mount.target, nil
		}
	}
	return "", nil
}

func (d *driver) publishDevice(ctx context.Context, id, target string) error {
	device, err := d.ensureDevice(ctx, id)
	if err != nil {
		return err
	}
	if mounted, err := isMounted(target); err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	file.Close()
	_, err = command(ctx, "mount", "-o", "bind", device, target)
	return err
}

func (d *driver) NodeUnpublishVolume(ctx context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	if err := missing([2]string{"volume_id", request.GetVolumeId()}, [2]string{"target_path", target}); err != nil {
		return nil, err
	}
	if err := d.unmount(ctx, target); err != nil {
		return nil, err
	}
	// Only an empty folder, or the file that a device was bound onto.
	if err := os.Remove(target); err != nil && !os.IsNotExist(err) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeExpandVolume lets the loop device and the file system on it see the size that the file has.
func (d *driver) NodeExpandVolume(ctx context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	id := request.GetVolumeId()
	if id != "" && request.GetVolumePath() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume_path is missing")
	}
	size, err := d.existing(id)
	if err != nil {
		return nil, err
	}
	device, err := d.store.device(ctx, id)
	if err == nil && device == "" {
		return nil, status.Errorf(codes.NotFound, "volume %s is not staged on node %s", id, d.node)
	}
	if err == nil {
		_, err = command(ctx, "losetup", "--set-capacity", device)
	}
	// The capability is optional; a device that was published as it is shows itself.
	if err == nil && request.GetVolumeCapability().GetBlock() == nil && !isDevice(request.GetVolumePath()) {
		_, err = command(ctx, "xfs_growfs", request.GetVolumePath())
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, nil
}
