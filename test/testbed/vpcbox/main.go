// Vpcbox stands for the daemon of the Amazon VPC CNI on a node of the test bed. What the daemon asks of EC2 - the interfaces of the instance and their
// addresses - is a file here. The rules of the node are set by the CNI's own package, those of a pod by the CNI's own plugin, which asks this program for
// an address.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/aws/amazon-vpc-cni-k8s/pkg/networkutils"
	"github.com/aws/amazon-vpc-cni-k8s/rpc"
	"google.golang.org/grpc"
)

// Where the plugin looks for the daemon; no setting of either changes it.
const socket = "/var/run/aws-node/ipamd.sock"

// instance is what the metadata service of EC2 would say.
type instance struct {
	Vpc    string `json:"vpc"`
	Subnet string `json:"subnet"`
	// The first is the primary one; its place in the list is its device number.
	Interfaces []networkInterface `json:"interfaces"`
}

type networkInterface struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	// For pods.
	Secondary []string `json:"secondary"`
}

func main() {
	metadata := flag.String("instance", "", "file that says which interfaces the node has")
	plugins := flag.String("plugins", "", "folder of the node's CNI plugins")
	configurations := flag.String("configurations", "", "folder of the node's CNI configurations")
	own := flag.String("own", "", "folder with the plugin aws-cni and the configuration 10-aws.conflist")
	flag.Parse()
	if err := run(*metadata, *own, *plugins, *configurations); err != nil {
		log.Fatalf("vpcbox: %v", err)
	}
}

func run(metadata, own, plugins, configurations string) error {
	text, err := os.ReadFile(metadata)
	if err != nil {
		return err
	}
	var is instance
	if err := json.Unmarshal(text, &is); err != nil {
		return fmt.Errorf("%s: %w", metadata, err)
	}
	if err := setUpNode(is); err != nil {
		return err
	}
	given, err := openAddresses(filepath.Join(filepath.Dir(socket), "ipam.json"), is.Interfaces)
	if err != nil {
		return err
	}
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	rpc.RegisterCNIBackendServer(server, &backend{vpc: is.Vpc, addresses: given})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	// In this order: with the configuration the kubelet calls the node ready for pods.
	if err := install(own, "aws-cni", plugins, 0o755); err != nil {
		return err
	}
	if err := install(own, "10-aws.conflist", configurations, 0o644); err != nil {
		return err
	}
	log.Printf("gives addresses of %d interfaces", len(is.Interfaces))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	select {
	case err := <-ended:
		return err
	case <-stop:
		server.GracefulStop()
		return nil
	}
}

// setUpNode gives the node the CNI's rules for all pods: connection marks, source NAT, and a routing table for each further interface.
func setUpNode(is instance) error {
	network, err := networkutils.New()
	if err != nil {
		return err
	}
	for device, each := range is.Interfaces {
		link, err := net.InterfaceByName(each.Name)
		if err != nil {
			return fmt.Errorf("interface %s: %w", each.Name, err)
		}
		// As its init container does for the primary interface: answers of a pod leave by another interface than questions came by.
		loose := fmt.Sprintf("/proc/sys/net/ipv4/conf/%s/rp_filter", each.Name)
		if err := os.WriteFile(loose, []byte("2\n"), 0o644); err != nil {
			return err
		}
		mac := link.HardwareAddr.String()
		if device == 0 {
			address := net.ParseIP(each.Address)
			if err := network.SetupHostNetwork([]string{is.Vpc}, mac, &address, false, false); err != nil {
				return err
			}
			continue
		}
		table := networkutils.CalculateRouteTableId(device, 0)
		if err := network.SetupENINetwork(each.Address, mac, 0, is.Subnet, 0, false, table, false); err != nil {
			return err
		}
	}
	return nil
}

// install replaces the file in one step: the container runtime may be reading the folder.
func install(from, name, to string, mode os.FileMode) error {
	content, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return err
	}
	partial := filepath.Join(to, "."+name)
	if err := os.WriteFile(partial, content, mode); err != nil {
		return err
	}
	return os.Rename(partial, filepath.Join(to, name))
}

type backend struct {
	rpc.UnimplementedCNIBackendServer
	vpc       string
	addresses *addresses
}

func (b *backend) AddNetwork(_ context.Context, in *rpc.AddNetworkRequest) (*rpc.AddNetworkReply, error) {
	got, err := b.addresses.take(in.ContainerID + "/" + in.IfName)
	if err != nil {
		log.Printf("%s/%s: %v", in.K8S_POD_NAMESPACE, in.K8S_POD_NAME, err)
		return &rpc.AddNetworkReply{Success: false}, nil
	}
	return &rpc.AddNetworkReply{
		Success:              true,
		VPCv4CIDRs:           []string{b.vpc},
		IPAllocationMetadata: []*rpc.IPAllocationMetadata{got.metadata()},
	}, nil
}

func (b *backend) DelNetwork(_ context.Context, in *rpc.DelNetworkRequest) (*rpc.DelNetworkReply, error) {
	had, err := b.addresses.giveBack(in.ContainerID + "/" + in.IfName)
	if err != nil {
		return nil, err
	}
	if had == nil {
		// As the daemon itself says of a pod that it does not know; the plugin has nothing to do then.
		return nil, errUnknownPod
	}
	return &rpc.DelNetworkReply{Success: true, IPAllocationMetadata: []*rpc.IPAllocationMetadata{had.metadata()}}, nil
}
