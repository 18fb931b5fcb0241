/** An exchange as the text of its file: what fits into a line stands in one. Pure. */
import { Document, isCollection, isMap, visit } from 'yaml';
import type { Exchange } from '../exchange.ts';

const width = 150;

export function textOf(exchange: Exchange): string {
  const { liqo, isthmusIs } = exchange;
  const document = new Document(exchange, { aliasDuplicateObjects: false });
  const liqoIs = isthmusIs === 'provider' ? 'consumer' : 'provider';
  document.commentBefore = ` Liqo ${liqo} (in rome) as ${liqoIs}, Isthmus (in milan) as ${isthmusIs}: what was written, in order. Captured: README.md says how.`;
  visit(document, {
    Collection(_key, node, path) {
      if (path.length < 4 || (isMap(node) && node.has('by'))) return;
      const length = JSON.stringify(node.toJSON()).length;
      if (length <= width - 4 * path.length && isCollection(node)) node.flow = true;
    },
  });
  return document.toString({ lineWidth: width + 40, singleQuote: true, flowCollectionPadding: false });
}
