/** The slope of the straight line that fits points best (least squares), by milliseconds, for each minute. 0 for fewer than two moments. */
export function slopePerMinute(points: readonly (readonly [ms: number, value: number])[]): number {
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / Math.max(1, points.length);
  const [meanMs, meanValue] = [mean(([ms]) => ms), mean(([, value]) => value)];
  const spread = mean(([ms]) => (ms - meanMs) ** 2);
  return spread === 0 ? 0 : (60_000 * mean(([ms, value]) => (ms - meanMs) * (value - meanValue))) / spread;
}
