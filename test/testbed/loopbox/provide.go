package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// provide makes, deletes and grows the PersistentVolumes of this node. Each node has its own such loop, so a volume needs no transport.
func provide(ctx context.Context, client kubernetes.Interface, kinds dynamic.Interface, d *driver, immediate bool) error {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, 10*time.Second)
	made := controller.NewProvisionController(ctx, client, driverName, &provisioner{client: client, kinds: kinds, driver: d, immediate: immediate},
		controller.LeaderElection(false), controller.AddFinalizer(true), controller.MetricsPort(0), controller.RateLimiter(backoff))
	go growClaims(ctx, client, d)
	made.Run(ctx)
	return fmt.Errorf("the provisioner of node %s ended", d.node)
}

type provisioner struct {
	client kubernetes.Interface
	// For VolumeSnapshots, which the cluster may not have.
	kinds     dynamic.Interface
	driver    *driver
	immediate bool
}

const selectedNode = "volume.kubernetes.io/selected-node"

func (p *provisioner) ShouldProvision(_ context.Context, claim *core.PersistentVolumeClaim) bool {
	node, selected := claim.Annotations[selectedNode]
	return node == p.driver.node || (!selected && p.immediate)
}

func (p *provisioner) SupportsBlock(context.Context) bool { return true }

func (p *provisioner) Provision(ctx context.Context, options controller.ProvisionOptions) (*core.PersistentVolume, controller.ProvisioningState, error) {
	spec := options.PVC.Spec
	for _, mode := range spec.AccessModes {
		if mode != core.ReadWriteOnce && mode != core.ReadWriteOncePod {
			return nil, controller.ProvisioningFinished, fmt.Errorf("access mode %s: a volume of %s is used by one node", mode, driverName)
		}
	}
	content, state, err := p.contentOf(ctx, options.PVC)
	if err != nil {
		return nil, state, err
	}
	capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER}}
	mode := core.PersistentVolumeFilesystem
	if spec.VolumeMode != nil && *spec.VolumeMode == core.PersistentVolumeBlock {
		mode = core.PersistentVolumeBlock
		capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		capability.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "xfs"}}
	}
	asked := spec.Resources.Requests[core.ResourceStorage]
	made, err := p.driver.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name:               options.PVName,
		CapacityRange:      &csi.CapacityRange{RequiredBytes: asked.Value()},
		VolumeCapabilities: []*csi.VolumeCapability{capability}, VolumeContentSource: content,
	})
	if err != nil {
		// Another node may have more room; without a chosen node the claim waits for this one.
		if _, selected := options.PVC.Annotations[selectedNode]; selected {
			return nil, controller.ProvisioningReschedule, err
		}
		return nil, controller.ProvisioningFinished, err
	}
	volume := made.GetVolume()
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: options.PVName},
		Spec: core.PersistentVolumeSpec{
			Capacity:                      core.ResourceList{core.ResourceStorage: *resource.NewQuantity(volume.CapacityBytes, resource.BinarySI)},
			AccessModes:                   spec.AccessModes,
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			MountOptions:                  options.StorageClass.MountOptions,
			VolumeMode:                    &mode,
			PersistentVolumeSource: core.PersistentVolumeSource{
				CSI: &core.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: volume.VolumeId, FSType: "xfs"},
			},
			NodeAffinity: &core.VolumeNodeAffinity{Required: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
				MatchExpressions: []core.NodeSelectorRequirement{{Key: topologyKey, Operator: core.NodeSelectorOpIn, Values: []string{p.driver.node}}},
			}}}},
		},
	}, controller.ProvisioningFinished, nil
}

func none(state controller.ProvisioningState, format string, about ...any) (*csi.VolumeContentSource, controller.ProvisioningState, error) {
	return nil, state, fmt.Errorf(format, about...)
}

// elsewhere is the state of a claim whose source is not on this node.
func elsewhere(claim *core.PersistentVolumeClaim) controller.ProvisioningState {
	if _, selected := claim.Annotations[selectedNode]; selected {
		return controller.ProvisioningReschedule
	}
	return controller.ProvisioningFinished
}

// contentOf is what the claim's volume is to begin with, nil for nothing: the volume of another claim of its namespace, or a snapshot, on this node.
func (p *provisioner) contentOf(ctx context.Context, claim *core.PersistentVolumeClaim) (*csi.VolumeContentSource, controller.ProvisioningState, error) {
	asked := claim.Spec.DataSource
	if asked == nil && claim.Spec.DataSourceRef == nil {
		return nil, controller.ProvisioningFinished, nil
	}
	if asked != nil && asked.Kind == "VolumeSnapshot" {
		return p.contentOfSnapshot(ctx, claim, asked.Name)
	}
	if asked == nil || asked.Kind != "PersistentVolumeClaim" {
		return none(controller.ProvisioningFinished, "data source: accepted is a claim or a VolumeSnapshot")
	}
	source, err := p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, asked.Name, meta.GetOptions{})
	if err != nil {
		return none(controller.ProvisioningFinished, "data source: %w", err)
	}
	if source.Status.Phase != core.ClaimBound {
		return none(controller.ProvisioningFinished, "data source: claim %s is %s, not Bound", source.Name, source.Status.Phase)
	}
	isBlock := func(claim *core.PersistentVolumeClaim) bool {
		return claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == core.PersistentVolumeBlock
	}
	if isBlock(source) != isBlock(claim) {
		return none(controller.ProvisioningFinished, "data source: claim %s has another volume mode", source.Name)
	}
	volume, err := p.client.CoreV1().PersistentVolumes().Get(ctx, source.Spec.VolumeName, meta.GetOptions{})
	if err != nil {
		return none(controller.ProvisioningFinished, "data source: %w", err)
	}
	if !isOf(volume, p.driver.node) {
		return none(elsewhere(claim), "data source: the volume of claim %s is not on node %s", source.Name, p.driver.node)
	}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: volume.Spec.CSI.VolumeHandle},
	}}, controller.ProvisioningFinished, nil
}

var snapshotKinds = schema.GroupVersion{Group: "snapshot.storage.k8s.io", Version: "v1"}

// contentOfSnapshot asks what external-provisioner does: a VolumeSnapshot that is ready to use, bound both ways to a content of this driver.
func (p *provisioner) contentOfSnapshot(ctx context.Context, claim *core.PersistentVolumeClaim, name string) (*csi.VolumeContentSource, controller.ProvisioningState, error) {
	snapshot, err := p.kinds.Resource(snapshotKinds.WithResource("volumesnapshots")).Namespace(claim.Namespace).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return none(controller.ProvisioningFinished, "data source: %w", err)
	}
	ready, _, _ := unstructured.NestedBool(snapshot.Object, "status", "readyToUse")
	bound, _, _ := unstructured.NestedString(snapshot.Object, "status", "boundVolumeSnapshotContentName")
	if !ready || bound == "" {
		return none(controller.ProvisioningFinished, "data source: VolumeSnapshot %s is not ready to use", name)
	}
	content, err := p.kinds.Resource(snapshotKinds.WithResource("volumesnapshotcontents")).Get(ctx, bound, meta.GetOptions{})
	if err != nil {
		return none(controller.ProvisioningFinished, "data source: %w", err)
	}
	driver, _, _ := unstructured.NestedString(content.Object, "spec", "driver")
	of, _, _ := unstructured.NestedString(content.Object, "spec", "volumeSnapshotRef", "uid")
	if driver != driverName || of != string(snapshot.GetUID()) {
		return none(controller.ProvisioningFinished, "data source: content %s is of driver %s and of VolumeSnapshot %s", bound, driver, of)
	}
	handle, _, _ := unstructured.NestedString(content.Object, "status", "snapshotHandle")
	found, err := p.driver.store.snapshot(handle)
	if err != nil {
		return none(controller.ProvisioningFinished, "data source: %w", err)
	}
	if found == nil {
		return none(elsewhere(claim), "data source: snapshot %s is not on node %s", handle, p.driver.node)
	}
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: handle},
	}}, controller.ProvisioningFinished, nil
}

func (p *provisioner) ShouldDelete(_ context.Context, volume *core.PersistentVolume) bool {
	return isOf(volume, p.driver.node)
}

func (p *provisioner) Delete(ctx context.Context, volume *core.PersistentVolume) error {
	_, err := p.driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume.Spec.CSI.VolumeHandle})
	return err
}

func isOf(volume *core.PersistentVolume, node string) bool {
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != driverName || volume.Spec.NodeAffinity == nil {
		return false
	}
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, expression := range term.MatchExpressions {
			if expression.Key == topologyKey && len(expression.Values) == 1 && expression.Values[0] == node {
				return true
			}
		}
	}
	return false
}

// growClaims does what the external resizer does: first the file, then the PersistentVolume; the kubelet does the rest.
func growClaims(ctx context.Context, client kubernetes.Interface, d *driver) {
	factory := informers.NewSharedInformerFactory(client, 10*time.Second)
	look := func(object any) {
		claim, ok := object.(*core.PersistentVolumeClaim)
		if !ok || claim.Status.Phase != core.ClaimBound || claim.DeletionTimestamp != nil {
			return
		}
		if err := growClaim(ctx, client, d, claim); err != nil {
			fmt.Printf("growing %s/%s: %v\n", claim.Namespace, claim.Name, err)
		}
	}
	factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, after any) { look(after) },
	})
	factory.Start(ctx.Done())
}

func growClaim(ctx context.Context, client kubernetes.Interface, d *driver, claim *core.PersistentVolumeClaim) error {
	asked, has := claim.Spec.Resources.Requests[core.ResourceStorage], claim.Status.Capacity[core.ResourceStorage]
	if asked.Cmp(has) <= 0 {
		return nil
	}
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, meta.GetOptions{})
	if err != nil || !isOf(volume, d.node) {
		return err
	}
	size := volume.Spec.Capacity[core.ResourceStorage]
	if asked.Cmp(size) > 0 {
		if err := tell(ctx, client, claim, asked, core.PersistentVolumeClaimControllerResizeInProgress, nil); err != nil {
			return err
		}
		if _, err := d.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
			VolumeId: volume.Spec.CSI.VolumeHandle, CapacityRange: &csi.CapacityRange{RequiredBytes: asked.Value()},
		}); err != nil {
			return err
		}
		patch := map[string]any{"spec": map[string]any{"capacity": map[string]string{"storage": asked.String()}}}
		if err := merge(patch, func(body []byte) error {
			_, err := client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, body, meta.PatchOptions{})
			return err
		}); err != nil {
			return err
		}
	}
	// The kubelet may be at work, or through with it.
	now, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, meta.GetOptions{})
	if err != nil {
		return err
	}
	has = now.Status.Capacity[core.ResourceStorage]
	turn := now.Status.AllocatedResourceStatuses[core.ResourceStorage]
	if asked.Cmp(has) <= 0 || turn == core.PersistentVolumeClaimNodeResizePending || turn == core.PersistentVolumeClaimNodeResizeInProgress {
		return nil
	}
	pending := core.PersistentVolumeClaimCondition{
		Type: core.PersistentVolumeClaimFileSystemResizePending, Status: core.ConditionTrue,
		LastTransitionTime: meta.Now(), Message: "waiting for the node to grow what is on the volume",
	}
	return tell(ctx, client, now, asked, core.PersistentVolumeClaimNodeResizePending, []any{pending})
}

// tell says in the claim's status, unless the claim changed meanwhile, what is allocated for it and whose turn it is: a kubelet reads both.
func tell(ctx context.Context, client kubernetes.Interface, claim *core.PersistentVolumeClaim, asked resource.Quantity, turn core.ClaimResourceStatus, conditions []any) error {
	said := map[string]any{
		"allocatedResources":        map[string]string{"storage": asked.String()},
		"allocatedResourceStatuses": map[string]string{"storage": string(turn)},
	}
	if conditions != nil {
		said["conditions"] = conditions
	}
	patch := map[string]any{"metadata": map[string]string{"resourceVersion": claim.ResourceVersion}, "status": said}
	return merge(patch, func(body []byte) error {
		_, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, body, meta.PatchOptions{}, "status")
		return err
	})
}

func merge(patch map[string]any, send func([]byte) error) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return send(body)
}
