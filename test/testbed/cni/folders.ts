/** Where a node has plugins of its CNI and their configuration. */

/** Those of containernetworking-plugins, which most CNIs build on. */
export const debianPlugins = '/usr/lib/cni';
/** In the node's folder: Debian's, and those that the CNI of the cluster puts beside them. */
export const pluginFolder = 'cni-plugins';
/** Where node processes of Isthmus look, too. */
export const usualConfigurations = '/etc/cni/net.d';
