// Kubebox is every component of a Kubernetes cluster in one program: `kubebox COMPONENT FLAGS`, or a link named after the component.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"

	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kube-proxy":              proxy.NewProxyCommand,
	"kubelet":                 kubeletCommand,
}

func main() {
	if os.Getenv("KUBEBOX_DIE_WITH_PARENT") != "" {
		dieWithParent()
	}
	name := filepath.Base(os.Args[0])
	if !isComponent(name) && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	if name == "kubectl" {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return
	}
	command, known := components[name]
	if !known {
		fmt.Fprintf(os.Stderr, "usage: kubebox %s FLAGS\n", strings.Join(names(), "|"))
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}

func isComponent(name string) bool {
	_, known := components[name]
	return known || name == "kubectl"
}

func names() []string {
	all := []string{"kubectl"}
	for name := range components {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}
