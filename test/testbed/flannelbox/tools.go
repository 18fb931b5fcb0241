//go:build tools

// Package flannelbox pins the modules of which flanneld is built.
package flannelbox

import _ "github.com/flannel-io/flannel"
