//go:build !without_etcd

package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

func init() { components["etcd"] = etcdCommand }

// etcdCommand serves a single etcd member. It never calls fsync: a killed process loses nothing, only a machine that loses power does.
func etcdCommand() *cobra.Command {
	var dir, listen string
	command := &cobra.Command{
		Use:           "etcd",
		Short:         "a single etcd member for a test cluster",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: false,
		RunE:          func(*cobra.Command, []string) error { return serveEtcd(dir, listen) },
	}
	command.Flags().StringVar(&dir, "data-dir", "", "where the data is kept")
	command.Flags().StringVar(&listen, "listen", "http://127.0.0.1:2379", "the client URL to serve: http://HOST:PORT or unix:///SOCKET")
	_ = command.MarkFlagRequired("data-dir")
	return command
}

func serveEtcd(dir, listen string) error {
	client, err := url.Parse(listen)
	if err != nil {
		return fmt.Errorf("--listen %q is not a URL: %w", listen, err)
	}
	advertised := *client
	if client.Scheme == "unix" {
		// Nobody asks this member for its address, but it must have the form host:port.
		advertised = url.URL{Scheme: "http", Host: "127.0.0.1:2379"}
		// A killed predecessor leaves its socket file, and binding refuses an existing one.
		if err := os.Remove(client.Path); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	config := embed.NewConfig()
	config.Dir = dir
	config.ListenClientUrls = []url.URL{*client}
	config.AdvertiseClientUrls = []url.URL{advertised}
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenPeerUrls = []url.URL{peer}
	config.AdvertisePeerUrls = []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.EnableGRPCGateway = false
	config.LogLevel = "warn"
	config.WarningUnaryRequestDuration = time.Second // unset means that every request is slow

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-stop:
		return nil
	case err := <-server.Err():
		return err
	}
}
