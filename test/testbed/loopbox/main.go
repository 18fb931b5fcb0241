// Loopbox is storage for one node of the test bed: a CSI driver whose volumes and snapshots are files, the volumes behind loop devices, and what makes PersistentVolumes of
// them for claims of its classes. It ends by itself when it cannot go on; the bed starts it again.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	driverName  = "loop.isthmus.test"
	topologyKey = "loop.isthmus.test/node"
	version     = "1"
)

type settings struct {
	node       string
	volumes    string
	kubeconfig string
	kubelet    string
	capacity   int64
	// Makes volumes of claims for which no node was selected.
	immediate bool
}

func main() {
	var s settings
	flag.StringVar(&s.node, "node", "", "name of the Node")
	flag.StringVar(&s.volumes, "volumes", "", "folder of the files behind volumes")
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "of the cluster; empty: only the driver runs")
	flag.StringVar(&s.kubelet, "kubelet", "/var/lib/kubelet", "folder of the kubelet")
	flag.Int64Var(&s.capacity, "capacity", 8<<30, "bytes that all volumes of this node have together")
	flag.BoolVar(&s.immediate, "immediate", false, "also make volumes for claims that wait for no node")
	flag.Parse()
	if err := run(s); err != nil {
		fmt.Fprintln(os.Stderr, "loopbox:", err)
		os.Exit(1)
	}
}

func run(s settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := os.MkdirAll(s.volumes, 0o700); err != nil {
		return err
	}
	d := &driver{store: &store{dir: s.volumes, capacity: s.capacity}, node: s.node}
	if err := d.store.thawAll(ctx); err != nil {
		return err
	}
	failed := make(chan error, 3)
	socket := filepath.Join(s.kubelet, "plugins", driverName, "csi.sock")
	if err := serve(socket, failed, func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, d)
		csi.RegisterControllerServer(server, d)
		csi.RegisterNodeServer(server, d)
	}); err != nil {
		return err
	}
	registered := filepath.Join(s.kubelet, "plugins_registry", driverName+"-reg.sock")
	if err := serve(registered, failed, func(server *grpc.Server) {
		registration.RegisterRegistrationServer(server, &registrar{socket: socket})
	}); err != nil {
		return err
	}
	if s.kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
		if err != nil {
			return err
		}
		config.QPS, config.Burst = 100, 200
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		kinds, err := dynamic.NewForConfig(config)
		if err != nil {
			return err
		}
		go func() { failed <- provide(ctx, client, kinds, d, s.immediate) }()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
