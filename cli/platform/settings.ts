/** What an installation does differently on some distributions. Pure. */

export interface PlatformSettings {
  /** Of the agent's webhooks, where control planes reach few ports of pods. Default: 9443. */
  readonly webhookPort?: number;
  /** On the Nodes that stand for providers. */
  readonly virtualNodeLabels?: Readonly<Record<string, string>>;
  /** On the Services of gateways. */
  readonly gatewayAnnotations?: Readonly<Record<string, string>>;
  /** TCP, at each gateway pod: for load balancers that cannot check UDP. */
  readonly gatewayHealthPort?: number;
  /** Pods of ours need SecurityContextConstraints. */
  readonly securityContextConstraints?: true;
  /** Pods, too, reach peers by the address of their node. */
  readonly fullMasquerade?: true;
}
