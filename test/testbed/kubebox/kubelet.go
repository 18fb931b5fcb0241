//go:build !before_1_34

package main

import (
	"context"

	"github.com/spf13/cobra"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// The kubelet installs the signal handler itself and panics on a second one, hence the plain context.
func kubeletCommand() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }
