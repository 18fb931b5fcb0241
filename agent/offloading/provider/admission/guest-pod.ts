/** What the rules about a guest's pod read of it, with its types: a hostile client may write anything where the CRD keeps unknown fields. */
import * as z from 'zod';

const flag = z.boolean().nullish();
const text = z.string().nullish();
const profile = z.looseObject({ type: text }).nullish();
const seLinux = z.looseObject({ type: text, user: text, role: text }).nullish();
const windows = z.looseObject({ hostProcess: flag }).nullish();
const quantities = z.record(z.string(), z.union([z.string(), z.number()])).nullish();
const resources = z.looseObject({ requests: quantities, limits: quantities }).nullish();

const Handler = z
  .looseObject({ httpGet: z.looseObject({ host: text }).nullish(), tcpSocket: z.looseObject({ host: text }).nullish() })
  .nullish();
const Container = z.looseObject({
  name: z.string(),
  image: text,
  restartPolicy: text,
  resources,
  ports: z.array(z.looseObject({ hostPort: z.number().nullish() })).nullish(),
  livenessProbe: Handler,
  readinessProbe: Handler,
  startupProbe: Handler,
  lifecycle: z.looseObject({ postStart: Handler, preStop: Handler }).nullish(),
  securityContext: z
    .looseObject({
      privileged: flag,
      procMount: text,
      capabilities: z
        .looseObject({ add: z.array(z.string()).nullish(), drop: z.array(z.string()).nullish() })
        .nullish(),
      allowPrivilegeEscalation: flag,
      runAsNonRoot: flag,
      runAsUser: z.number().nullish(),
      seccompProfile: profile,
      appArmorProfile: profile,
      seLinuxOptions: seLinux,
      windowsOptions: windows,
    })
    .nullish(),
});
export type GuestContainer = z.infer<typeof Container>;

const Expression = z.looseObject({ key: z.string() });
const NodeTerm = z.looseObject({
  matchExpressions: z.array(Expression).nullish(),
  matchFields: z.array(Expression).nullish(),
});
const PodTerm = z.looseObject({
  namespaces: z.array(z.string()).nullish(),
  namespaceSelector: z.looseObject({}).nullish(),
});
const PodTerms = z
  .looseObject({
    requiredDuringSchedulingIgnoredDuringExecution: z.array(PodTerm).nullish(),
    preferredDuringSchedulingIgnoredDuringExecution: z
      .array(z.looseObject({ podAffinityTerm: PodTerm.nullish() }))
      .nullish(),
  })
  .nullish();

const ProjectedSource = z.looseObject({ serviceAccountToken: z.looseObject({ audience: text }).nullish() });

const GuestPlacement = z.looseObject({
  serviceAccount: text,
  serviceAccountName: text,
  volumes: z
    .array(
      z.looseObject({
        name: text,
        projected: z.looseObject({ sources: z.array(ProjectedSource).nullish() }).nullish(),
      }),
    )
    .nullish(),
  tolerations: z.array(z.looseObject({ key: text })).nullish(),
  nodeName: text,
  nodeSelector: z.record(z.string(), z.string()).nullish(),
  schedulerName: text,
  runtimeClassName: text,
  priorityClassName: text,
  priority: z.number().nullish(),
  terminationGracePeriodSeconds: z.number().nullish(),
  affinity: z
    .looseObject({
      nodeAffinity: z
        .looseObject({
          requiredDuringSchedulingIgnoredDuringExecution: z
            .looseObject({ nodeSelectorTerms: z.array(NodeTerm).nullish() })
            .nullish(),
          preferredDuringSchedulingIgnoredDuringExecution: z
            .array(z.looseObject({ preference: NodeTerm.nullish() }))
            .nullish(),
        })
        .nullish(),
      podAffinity: PodTerms,
      podAntiAffinity: PodTerms,
    })
    .nullish(),
});
export type GuestPlacement = z.infer<typeof GuestPlacement>;

export const GuestPod = GuestPlacement.extend({
  containers: z.array(Container).min(1),
  initContainers: z.array(Container).nullish(),
  ephemeralContainers: z.array(Container).nullish(),
  hostNetwork: flag,
  hostPID: flag,
  hostIPC: flag,
  overhead: quantities,
  resources,
  securityContext: z
    .looseObject({
      sysctls: z.array(z.looseObject({ name: z.string() })).nullish(),
      runAsNonRoot: flag,
      runAsUser: z.number().nullish(),
      seccompProfile: profile,
      appArmorProfile: profile,
      seLinuxOptions: seLinux,
      windowsOptions: windows,
    })
    .nullish(),
});
export type GuestPod = z.infer<typeof GuestPod>;
