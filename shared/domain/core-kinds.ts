/** Handles for the built-in kinds that Isthmus reads or writes. Custom kinds have theirs beside their schema. */
import type {
  CoreV1Event,
  V1CertificateSigningRequest,
  V1ClusterRole,
  V1ClusterRoleBinding,
  V1CSIDriver,
  V1CSIStorageCapacity,
  V1CustomResourceDefinition,
  V1DaemonSet,
  V1Deployment,
  V1EndpointSlice,
  V1Ingress,
  V1MutatingWebhookConfiguration,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1Role,
  V1Service,
  V1ServiceAccount,
  V1StorageClass,
  V1ValidatingWebhookConfiguration,
} from '@kubernetes/client-node';
import type {
  ConfigMap,
  KubeObject,
  Lease,
  Namespace,
  Node,
  Pod,
  ResourceType,
  RoleBinding,
  Secret,
  Wire,
} from './kube-object.ts';

type Meta<T> = Omit<T, 'metadata' | 'apiVersion' | 'kind'> & KubeObject;
export type Service = Meta<Wire<V1Service>>;
export type ServiceAccount = Meta<Wire<V1ServiceAccount>>;
export type PersistentVolumeClaim = Meta<Wire<V1PersistentVolumeClaim>>;
export type PersistentVolume = Meta<Wire<V1PersistentVolume>>;
export type StorageClass = Meta<Wire<V1StorageClass>>;
export type CsiDriver = Meta<Wire<V1CSIDriver>>;
export type CsiStorageCapacity = Meta<Wire<V1CSIStorageCapacity>>;
export type Deployment = Meta<Wire<V1Deployment>>;
export type DaemonSet = Meta<Wire<V1DaemonSet>>;
export type Role = Meta<Wire<V1Role>>;
export type ClusterRole = Meta<Wire<V1ClusterRole>>;
export type ClusterRoleBinding = Meta<Wire<V1ClusterRoleBinding>>;
export type CertificateSigningRequest = Meta<Wire<V1CertificateSigningRequest>>;
export type CustomResourceDefinition = Meta<Wire<V1CustomResourceDefinition>>;
export type MutatingWebhookConfiguration = Meta<Wire<V1MutatingWebhookConfiguration>>;
export type ValidatingWebhookConfiguration = Meta<Wire<V1ValidatingWebhookConfiguration>>;
export type Ingress = Meta<Wire<V1Ingress>>;
export type EndpointSlice = Meta<Wire<V1EndpointSlice>>;
/** v1: the older form of the same objects, with their source and count. */
export type CoreEvent = Meta<Wire<CoreV1Event>>;
/** events.k8s.io/v1; written, never cached. */
export type KubeEvent = KubeObject & Record<string, unknown>;

const kind = <T extends KubeObject>(
  group: string,
  version: string,
  name: string,
  plural: string,
  namespaced: boolean,
): ResourceType<T> => ({ group, version, kind: name, plural, namespaced });

export const pods = kind<Pod>('', 'v1', 'Pod', 'pods', true);
export const nodes = kind<Node>('', 'v1', 'Node', 'nodes', false);
export const namespaces = kind<Namespace>('', 'v1', 'Namespace', 'namespaces', false);
export const secrets = kind<Secret>('', 'v1', 'Secret', 'secrets', true);
export const configMaps = kind<ConfigMap>('', 'v1', 'ConfigMap', 'configmaps', true);
export const services = kind<Service>('', 'v1', 'Service', 'services', true);
export const serviceAccounts = kind<ServiceAccount>('', 'v1', 'ServiceAccount', 'serviceaccounts', true);
export const persistentVolumeClaims = kind<PersistentVolumeClaim>(
  '',
  'v1',
  'PersistentVolumeClaim',
  'persistentvolumeclaims',
  true,
);
export const persistentVolumes = kind<PersistentVolume>('', 'v1', 'PersistentVolume', 'persistentvolumes', false);
export const storageClasses = kind<StorageClass>('storage.k8s.io', 'v1', 'StorageClass', 'storageclasses', false);
export const csiDrivers = kind<CsiDriver>('storage.k8s.io', 'v1', 'CSIDriver', 'csidrivers', false);
export const csiStorageCapacities = kind<CsiStorageCapacity>(
  'storage.k8s.io',
  'v1',
  'CSIStorageCapacity',
  'csistoragecapacities',
  true,
);
export const events = kind<KubeEvent>('events.k8s.io', 'v1', 'Event', 'events', true);
export const coreEvents = kind<CoreEvent>('', 'v1', 'Event', 'events', true);
export const ingresses = kind<Ingress>('networking.k8s.io', 'v1', 'Ingress', 'ingresses', true);
export const endpointSlices = kind<EndpointSlice>('discovery.k8s.io', 'v1', 'EndpointSlice', 'endpointslices', true);
export const leases = kind<Lease>('coordination.k8s.io', 'v1', 'Lease', 'leases', true);
export const deployments = kind<Deployment>('apps', 'v1', 'Deployment', 'deployments', true);
export const daemonSets = kind<DaemonSet>('apps', 'v1', 'DaemonSet', 'daemonsets', true);
const rbac = 'rbac.authorization.k8s.io';
export const roles = kind<Role>(rbac, 'v1', 'Role', 'roles', true);
export const roleBindings = kind<RoleBinding>(rbac, 'v1', 'RoleBinding', 'rolebindings', true);
export const clusterRoles = kind<ClusterRole>(rbac, 'v1', 'ClusterRole', 'clusterroles', false);
export const clusterRoleBindings = kind<ClusterRoleBinding>(
  rbac,
  'v1',
  'ClusterRoleBinding',
  'clusterrolebindings',
  false,
);
export const certificateSigningRequests = kind<CertificateSigningRequest>(
  'certificates.k8s.io',
  'v1',
  'CertificateSigningRequest',
  'certificatesigningrequests',
  false,
);
export const customResourceDefinitions = kind<CustomResourceDefinition>(
  'apiextensions.k8s.io',
  'v1',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  false,
);
export const mutatingWebhookConfigurations = kind<MutatingWebhookConfiguration>(
  'admissionregistration.k8s.io',
  'v1',
  'MutatingWebhookConfiguration',
  'mutatingwebhookconfigurations',
  false,
);
export const validatingWebhookConfigurations = kind<ValidatingWebhookConfiguration>(
  'admissionregistration.k8s.io',
  'v1',
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
  false,
);
