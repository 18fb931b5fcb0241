package main

import (
	"context"
	"errors"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// driver is one node's identity, controller and node service.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	store *store
	node  string
	// Of a volume with a single writer, two publications at a time would each see no other one.
	publishing sync.Mutex
}

const (
	leastBytes   = 16 << 20
	defaultBytes = 64 << 20
)

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: version}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	service := func(kind csi.PluginCapability_Service_Type) *csi.PluginCapability {
		return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: kind}}}
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		service(csi.PluginCapability_Service_CONTROLLER_SERVICE),
		service(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE}}},
	}}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *driver) topology() *csi.Topology {
	return &csi.Topology{Segments: map[string]string{topologyKey: d.node}}
}

// checkCapabilities accepts one writing node: the file of a volume is on that node alone.
func checkCapabilities(capabilities []*csi.VolumeCapability) error {
	if len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "volume_capabilities are missing")
	}
	for _, capability := range capabilities {
		switch mode := capability.GetAccessMode().GetMode(); mode {
		case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
			csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		default:
			return status.Errorf(codes.InvalidArgument, "access mode %s: a volume of %s is used by one node", mode, driverName)
		}
	}
	return nil
}

func sizeOf(asked *csi.CapacityRange) (int64, error) {
	required, limit := asked.GetRequiredBytes(), asked.GetLimitBytes()
	size := max(required, leastBytes)
	if required == 0 {
		size = defaultBytes
	}
	if limit > 0 && size > limit {
		if required > 0 || limit < leastBytes {
			return 0, status.Errorf(codes.OutOfRange, "at least %d and at most %d bytes asked; the least is %d", required, limit, leastBytes)
		}
		size = limit
	}
	return size, nil
}

func (d *driver) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	id := request.GetName()
	if !isName(id) {
		return nil, status.Errorf(codes.InvalidArgument, "name is %q", id)
	}
	if err := checkCapabilities(request.GetVolumeCapabilities()); err != nil {
		return nil, err
	}
	bytes, err := sizeOf(request.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	source, err := d.sourceOf(request, bytes)
	if err != nil {
		return nil, err
	}
	size, err := d.store.size(id)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if size >= 0 {
		limit := request.GetCapacityRange().GetLimitBytes()
		if size < request.GetCapacityRange().GetRequiredBytes() || (limit > 0 && size > limit) {
			return nil, status.Errorf(codes.AlreadyExists, "volume %s exists with %d bytes", id, size)
		}
		bytes = size
	} else if err := d.store.create(ctx, id, bytes, source, request.GetVolumeCapabilities()[0].GetBlock() == nil); err != nil {
		return nil, failure(err)
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId: id, CapacityBytes: bytes, AccessibleTopology: []*csi.Topology{d.topology()}, ContentSource: request.GetVolumeContentSource(),
	}}, nil
}

func failure(err error) error {
	if errors.Is(err, errFull) {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}

func (d *driver) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	id := request.GetVolumeId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "volume_id is missing")
	}
	if !isName(id) {
		return &csi.DeleteVolumeResponse{}, nil // none of ours, so it is gone
	}
	if err := d.store.remove(ctx, id); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// existing is the size of the volume; a volume that does not exist is an error.
func (d *driver) existing(id string) (int64, error) {
	if id == "" {
		return 0, status.Error(codes.InvalidArgument, "volume_id is missing")
	}
	size, err := int64(-1), error(nil)
	if isName(id) {
		size, err = d.store.size(id)
	}
	if err != nil {
		return 0, status.Error(codes.Internal, err.Error())
	}
	if size < 0 {
		return 0, status.Errorf(codes.NotFound, "there is no volume %s on node %s", id, d.node)
	}
	return size, nil
}

func (d *driver) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if request.GetVolumeId() != "" && len(request.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "volume_capabilities are missing")
	}
	if _, err := d.existing(request.GetVolumeId()); err != nil {
		return nil, err
	}
	if err := checkCapabilities(request.GetVolumeCapabilities()); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: request.GetVolumeContext(), VolumeCapabilities: request.GetVolumeCapabilities(), Parameters: request.GetParameters(),
	}}, nil
}

func (d *driver) GetCapacity(_ context.Context, request *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	if node, said := request.GetAccessibleTopology().GetSegments()[topologyKey]; said && node != d.node {
		return &csi.GetCapacityResponse{}, nil
	}
	free, err := d.store.free()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.GetCapacityResponse{AvailableCapacity: free}, nil
}

func (d *driver) ControllerExpandVolume(_ context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if request.GetVolumeId() != "" && request.GetCapacityRange() == nil {
		return nil, status.Error(codes.InvalidArgument, "capacity_range is missing")
	}
	size, err := d.existing(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	bytes, err := sizeOf(request.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	if err := d.store.grow(request.GetVolumeId(), bytes); err != nil {
		return nil, failure(err)
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: max(size, bytes), NodeExpansionRequired: true}, nil
}

func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	var capabilities []*csi.ControllerServiceCapability
	for _, kind := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME, csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS,
	} {
		capabilities = append(capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: kind}},
		})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: capabilities}, nil
}
