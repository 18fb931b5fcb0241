/** The template language of gateways, as tables. */
import { describe, expect, test } from 'vitest';
import { renderText } from './execute.ts';
import { renderTree, type TemplateData } from './render-tree.ts';

const data: TemplateData = {
  Spec: {
    mtu: 1340,
    endpoint: { port: 51840, serviceType: 'NodePort', ports: [7, 8] },
    secretRef: {},
    serviceLabels: { b: '2', a: '1' },
  },
  Name: 'rome',
  Namespace: 'liqo-tenant-milan',
  GatewayUID: 'u-1',
  ClusterID: 'milan',
  SecretName: 'gw-rome',
};

describe('a text of a template', () => {
  test.each([
    ['plain', 'plain'],
    ['gw-{{ .Name }}', 'gw-rome'],
    ['{{.Name}}.{{.Namespace}}', 'rome.liqo-tenant-milan'],
    ['{{ .Spec.MTU }}', '1340'],
    ['{{ .Spec.Endpoint.LoadBalancerIP }}', ''],
    ['{{ .Spec.Nothing.At.All }}', ''],
    ['a {{- .Name -}} b', 'aromeb'],
    ['a{{/* not this */}}b', 'ab'],
    ['{{ if .Spec.SecretRef.Name }}own{{ else }}made{{ end }}', 'made'],
    ['{{ if .Spec.Endpoint.NodePort }}n{{ else if .Spec.Endpoint.Port }}p{{ else }}x{{ end }}', 'p'],
    ['{{ if gt (len .Spec.Endpoint.Ports) 1 }}many{{ else }}one{{ end }}', 'many'],
    ['{{ range .Spec.Endpoint.Ports }}<{{ . }}>{{ end }}', '<7><8>'],
    ['{{ range $i, $p := .Spec.Endpoint.Ports }}{{ if $i }},{{ end }}{{ $p }}{{ end }}', '7,8'],
    ['{{ range $k, $v := .Spec.ServiceLabels }}{{ $k }}={{ $v }};{{ end }}', 'a=1;b=2;'],
    ['{{ range .Spec.Endpoint.NodePorts }}x{{ else }}none{{ end }}', 'none'],
    ['{{ range .Spec.Endpoint.Ports }}{{ $.Name }}{{ . }} {{ end }}', 'rome7 rome8 '],
    ['{{ with .Spec.Endpoint }}{{ .Port }}{{ end }}', '51840'],
    ['{{ .Spec.Endpoint.Ports | len }}', '2'],
    ['{{ index .Spec.Endpoint.Ports 1 }}', '8'],
    ['{{ if and (eq .Spec.Endpoint.ServiceType "NodePort") (not .Spec.Endpoint.NodePort) }}free{{ end }}', 'free'],
    ['{{ or .Spec.Endpoint.NodePort .Spec.Endpoint.Port }}', '51840'],
    ['{{ "}}" }}{{ `{{` }}', '}}{{'],
    ['{{ if ne .ClusterID "milan" }}a{{ else }}b{{ end }}', 'b'],
  ])('%s is %s', (template, text) => expect(renderText(template, data)).toBe(text));

  test.each([
    ['{{ .Nme }}', 'field .Nme is not known, accepted: .Spec, .Name'],
    ['{{ .Name', 'no closing }}'],
    ['{{ if .Name }}', 'has no {{ end }}'],
    ['{{ if .Name }}{{ else }}', 'has no {{ end }} after its {{ else }}'],
    ['{{ end }}', 'closes nothing'],
    ['{{ printf "%d" 1 }}', 'function "printf" is not known'],
    ['{{ }}', 'an action is empty'],
    ['{{ $x }}', '$x is not defined'],
    ['{{ .Name .Name }}', 'is out of place'],
    ['{{ (len .Name }}', 'a parenthesis is not closed'],
    ['{{ .Spec.Endpoint }}', 'an object was to be printed'],
    ['{{ gt .Name 1 }}', 'gt cannot compare'],
    ['{{ .Name ~ }}', '"~" is not understood'],
  ])('%s is refused', (template, why) =>
    expect(() => renderText(template, data)).toThrow(
      expect.objectContaining({ message: expect.stringContaining(why) }),
    ),
  );
});

describe('the tree of a template', () => {
  test('keeps its shape; what looks like an integer becomes one, but not among labels, annotations, arguments or environment', () => {
    const tree = {
      metadata: { labels: { port: '{{ .Spec.Endpoint.Port }}', n: 7 }, name: '{{ .Spec.MTU }}' },
      spec: {
        ports: [{ port: '{{ .Spec.Endpoint.Port }}', protocol: 'UDP', name: 'p-{{ .Spec.Endpoint.Port }}' }],
        replicas: '2',
        big: '12345678901234567890',
        zeros: '007',
        on: true,
        selector: { matchLabels: { tier: '1' } },
        args: ['--mtu={{ .Spec.MTU }}', '{{ .Spec.MTU }}'],
        env: [{ name: 'MTU', value: '{{ .Spec.MTU }}' }],
      },
    };
    expect(renderTree(tree, data)).toEqual({
      metadata: { labels: { port: '51840', n: '7' }, name: '1340' },
      spec: {
        ports: [{ port: 51840, protocol: 'UDP', name: 'p-51840' }],
        replicas: 2,
        big: '12345678901234567890',
        zeros: '007',
        on: true,
        selector: { matchLabels: { tier: '1' } },
        args: ['--mtu=1340', '1340'],
        env: [{ name: 'MTU', value: '1340' }],
      },
    });
  });

  test.each([
    ['a field that is not set', { '?nodePort': '{{ .Spec.Endpoint.NodePort }}' }, {}],
    ['a field that is set', { '?port': '{{ .Spec.Endpoint.Port }}' }, { port: 51840 }],
    ['the first field of a value, however deep', { '?a': { b: ['x', '{{ .Spec.SecretRef.Name }}-{{ .Name }}'] } }, {}],
    ['a condition on a field', { '?a': '{{ if gt (len .Spec.Endpoint.NodePorts) 0 }}y{{ end }}' }, {}],
    ['no field', { '?a': 'b' }, { a: 'b' }],
  ])('has or lacks an optional entry by %s', (_what, tree, expected) =>
    expect(renderTree(tree, data)).toEqual(expected),
  );
});
