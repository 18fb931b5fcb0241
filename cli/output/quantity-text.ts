/** Quantities as people read them; `-o json` has them as the cluster said. */
import { tryParseQuantity } from '#shared/domain/quantity.ts';

const units = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'] as const;
const nano = 1_000_000_000;

/** `24581692Ki` is `23.4Gi`. What is no quantity stays as it is; `-` for nothing. */
export function memoryText(quantity: string | undefined): string {
  if (quantity === undefined) return '-';
  const parsed = tryParseQuantity(quantity);
  if (parsed === undefined) return quantity;
  let amount = Number(parsed) / nano;
  let unit = 0;
  while (amount >= 1_024 && unit < units.length - 1) {
    amount /= 1_024;
    unit += 1;
  }
  return `${Number(amount.toFixed(1))}${units[unit]}`;
}
