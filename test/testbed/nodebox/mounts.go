package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// arrangeMounts gives the node a /proc, /run and /var of its own. All of it goes away with the namespace, so nothing is ever left mounted.
func arrangeMounts(s settings) error {
	// Slave: what the host unmounts goes away here too; nothing mounted here is seen outside.
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := mount("tmpfs", "/run", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755"); err != nil {
		return err
	}
	// wireguard-go's control sockets and ip-netns names are per file system, not per network namespace: hence a private /run.
	for _, dir := range []string{"/run/netns", "/run/wireguard", "/run/lock"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for name, source := range map[string]string{"cluster": s.cluster, "node": s.node, "bin": s.bin} {
		if err := bind(source, filepath.Join("/run/isthmus", name)); err != nil {
			return err
		}
	}
	if err := privateVar(filepath.Join("/run/isthmus/node", "var")); err != nil {
		return err
	}
	if s.ownEtc {
		if err := privateEtc(); err != nil {
			return err
		}
	}
	if err := maskTunables(); err != nil {
		return err
	}
	return mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "")
}

// privateVar keeps /var/lib/kubelet, /var/lib/containerd, /var/log and the rest of this node apart from the host's.
func privateVar(dir string) error {
	for _, name := range []string{"lib/kubelet", "lib/containerd", "lib/cni", "log/pods", "log/containers", "cache", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("/run", filepath.Join(dir, "run")); err != nil && !os.IsExist(err) {
		return err
	}
	return bind(dir, "/var")
}

// privateEtc lays what the node writes over the host's /etc, in memory: a CNI configures the container runtime there, and Isthmus reads it.
func privateEtc() error {
	const changes, scratch = "/run/isthmus/etc", "/run/isthmus/etc.work"
	for _, dir := range []string{changes, scratch} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := mount("overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir="+changes+",workdir="+scratch); err != nil {
		return err
	}
	configurations := "/run/isthmus/node/cni"
	if err := os.MkdirAll(configurations, 0o755); err != nil {
		return err
	}
	return bind(configurations, "/etc/cni/net.d")
}

// The kubelet insists on these values and would set them for the whole machine; it reads them here and finds nothing to do.
var tunables = map[string]string{
	"vm/overcommit_memory": "1",
	"vm/panic_on_oom":      "0",
	"kernel/panic":         "10",
	"kernel/panic_on_oops": "1",
}

func maskTunables() error {
	dir := "/run/isthmus/tunables"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, value := range tunables {
		mask := filepath.Join(dir, strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(mask, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(mask, filepath.Join("/proc/sys", name), "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

func bind(source, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	return mount(source, target, "", syscall.MS_BIND, "")
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}
