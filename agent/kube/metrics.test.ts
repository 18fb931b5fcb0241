import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';

test('a controller is counted from zero, by outcome', async () => {
  const metrics = await createMetrics(['tenant']);
  expect(await metrics.text()).toContain('isthmus_reconcile_total{controller="tenant",outcome="error"} 0');
  metrics.reconciled('tenant', 'settled', 0.01);
  metrics.queued('tenant', 3);
  const text = await metrics.text();
  expect(text).toContain('isthmus_reconcile_total{controller="tenant",outcome="settled"} 1');
  expect(text).toContain('isthmus_queue_depth{controller="tenant"} 3');
  expect(text).toContain('isthmus_reconcile_seconds_count{controller="tenant"} 1');
});
