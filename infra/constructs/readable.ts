/** A resolved CloudFormation value as one line of text: references and imports by name, joins joined. */
export function readable(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const [[intrinsic, of] = ['', undefined]] = Object.entries(value);
  switch (intrinsic) {
    case 'Ref':
      return `<${readable(of)}>`;
    case 'Fn::ImportValue':
      return readable(of);
    case 'Fn::GetAtt':
      return `<${(of as readonly unknown[]).map(readable).join('.')}>`;
    case 'Fn::Join': {
      const [separator, parts] = of as readonly [string, readonly unknown[]];
      return parts.map(readable).join(separator);
    }
    default:
      return JSON.stringify(value);
  }
}
