package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/aws/amazon-vpc-cni-k8s/pkg/networkutils"
	"github.com/aws/amazon-vpc-cni-k8s/rpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// As the daemon: connections of the pod that had an address last are over when another pod has it.
const cooldown = 30 * time.Second

var (
	errUnknownPod = status.Error(codes.NotFound, "datastore: unknown pod")
	errNoneFree   = errors.New("all addresses of all interfaces are taken")
)

type address struct {
	IP     string `json:"ip"`
	Device int    `json:"device"`
}

func (a address) metadata() *rpc.IPAllocationMetadata {
	return &rpc.IPAllocationMetadata{
		IPv4Addr:     a.IP,
		DeviceNumber: int32(a.Device),
		RouteTableId: int32(networkutils.CalculateRouteTableId(a.Device, 0)),
	}
}

// addresses knows which pod has which address, also after a restart: it writes each change before it answers.
type addresses struct {
	mutex sync.Mutex
	file  string
	// Those of the first interface first.
	all    []address
	taken  map[string]address
	freeAt map[string]time.Time
}

func openAddresses(file string, interfaces []networkInterface) (*addresses, error) {
	a := &addresses{file: file, taken: map[string]address{}, freeAt: map[string]time.Time{}}
	for device, each := range interfaces {
		for _, ip := range each.Secondary {
			a.all = append(a.all, address{IP: ip, Device: device})
		}
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &a.taken); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return a, nil
}

// take gives a pod the same address as before when the container runtime asks twice.
func (a *addresses) take(pod string) (address, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if has, ok := a.taken[pod]; ok {
		return has, nil
	}
	used := map[string]bool{}
	for _, each := range a.taken {
		used[each.IP] = true
	}
	for _, each := range a.all {
		if used[each.IP] || time.Now().Before(a.freeAt[each.IP]) {
			continue
		}
		a.taken[pod] = each
		if err := a.write(); err != nil {
			delete(a.taken, pod)
			return address{}, err
		}
		return each, nil
	}
	return address{}, errNoneFree
}

// giveBack answers with nil when the pod has none.
func (a *addresses) giveBack(pod string) (*address, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	had, ok := a.taken[pod]
	if !ok {
		return nil, nil
	}
	delete(a.taken, pod)
	a.freeAt[had.IP] = time.Now().Add(cooldown)
	return &had, a.write()
}

func (a *addresses) write() error {
	text, err := json.Marshal(a.taken)
	if err != nil {
		return err
	}
	partial := a.file + ".partial"
	if err := os.WriteFile(partial, text, 0o600); err != nil {
		return err
	}
	return os.Rename(partial, a.file)
}
