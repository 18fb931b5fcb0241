/** Of the small XML that STS answers with: flat, and of what is asked for here nothing is ever escaped. */
export const element = (xml: string, name: string): string | undefined =>
  new RegExp(`<${name}>\\s*([^<]*?)\\s*</${name}>`).exec(xml)?.[1];
