/** For programs that live as long as one test file: without the optimizing compiler and a parallel collector, which take more than they give back. */
export const shortLived = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-XX:-UsePerfData'] as const;
