//go:build tools

package main

import _ "github.com/aws/amazon-vpc-cni-k8s/cmd/routed-eni-cni-plugin"
