// Nodebox makes the namespaces of one test bed node and is process 1 in them: when it dies, the kernel ends everything of that node.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

type settings struct {
	hostname string
	// Appear as /run/isthmus/cluster, /run/isthmus/node and /run/isthmus/bin, wherever they are on the host.
	cluster, node, bin string
	// With an /etc/cni/net.d that is the folder cni of the node, and an /etc that may be written to.
	ownEtc bool
}

func main() {
	var s settings
	flags := flag.NewFlagSet("nodebox", flag.ExitOnError)
	flags.StringVar(&s.hostname, "hostname", "", "host name of the node")
	flags.StringVar(&s.cluster, "cluster", "", "state folder of the cluster")
	flags.StringVar(&s.node, "node", "", "state folder of the node")
	flags.StringVar(&s.bin, "bin", "", "folder of the components' binary")
	flags.BoolVar(&s.ownEtc, "own-etc", false, "give the node an /etc of its own")
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: nodebox start|init FLAGS"))
	}
	_ = flags.Parse(os.Args[2:])
	switch os.Args[1] {
	case "start":
		fail(start())
	case "init":
		fail(becomeNode(s))
	default:
		fail(fmt.Errorf("unknown command %q: start or init", os.Args[1]))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "nodebox: %v\n", err)
		os.Exit(1)
	}
}

// start runs `nodebox init` in new namespaces, waits until the node stands, and prints its process id as the host sees it.
func start() error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	child := exec.Command("/proc/self/exe", append([]string{"init"}, os.Args[2:]...)...)
	child.Stderr = os.Stderr
	child.ExtraFiles = []*os.File{writer}
	child.Dir = "/"
	child.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("cannot make namespaces: %w", err)
	}
	writer.Close()
	if line, err := bufio.NewReader(reader).ReadString('\n'); err != nil || strings.TrimSpace(line) != "standing" {
		_ = child.Wait()
		return fmt.Errorf("the node %v did not come up", os.Args[2:])
	}
	fmt.Println(child.Process.Pid)
	return nil
}

func becomeNode(s settings) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("init is for process 1 of a new namespace; use start")
	}
	if err := syscall.Sethostname([]byte(s.hostname)); err != nil {
		return err
	}
	if err := arrangeMounts(s); err != nil {
		return err
	}
	ready := os.NewFile(3, "ready")
	if _, err := ready.WriteString("standing\n"); err != nil {
		return err
	}
	ready.Close()
	// Process 1 has no handler for SIGTERM, so only the host's SIGKILL ends it. Its duty is to reap.
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := 0; fd <= 2; fd++ {
		if err := syscall.Dup2(int(null.Fd()), fd); err != nil {
			return err
		}
	}
	reap()
	return nil
}
