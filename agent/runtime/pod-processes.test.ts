import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { createProcessFinder, isOfPod, type PodProcess, startTime, untilEnded } from './pod-processes.ts';

const uid = '0f3c2d1e-aaaa-4bbb-8ccc-123456789abc';
const other = '0f3c2d1e-aaaa-4bbb-8ccc-123456789abd';

describe('a process belongs to a pod', () => {
  test.each([
    {
      what: 'version 2, systemd, guaranteed',
      text: `0::/kubepods.slice/kubepods-pod${uid.replaceAll('-', '_')}.slice/cri-containerd-ab.scope`,
    },
    {
      what: 'version 2, systemd, burstable',
      text: `0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice/cri-containerd-ab.scope`,
    },
    { what: 'version 2, cgroupfs', text: `0::/kubepods/besteffort/pod${uid}/ab` },
    { what: 'version 2, seen from another cgroup namespace', text: `0::/../../pod${uid}/ab` },
    {
      what: 'version 1, cgroupfs',
      text: `12:pids:/kubepods/burstable/pod${uid}/ab\n1:name=systemd:/kubepods/burstable/pod${uid}/ab`,
    },
    {
      what: 'version 1, systemd, with colons',
      text: `12:pids:/kubepods.slice/kubepods-pod${uid.replaceAll('-', '_')}.slice:cri-containerd:ab\n3:cpu:/kubepods-pod${uid.replaceAll('-', '_')}.slice/x`,
    },
    {
      what: 'version 1, one controller under a root of its own',
      text: `3:cpu:/isthmus/node1/kubepods/pod${uid}/ab\n2:cpuset:/`,
    },
  ])('$what', ({ text }) => {
    expect({ own: isOfPod(text, uid), other: isOfPod(text, other) }).toEqual({ own: true, other: false });
  });

  test.each([
    { what: 'the root group', text: '0::/' },
    { what: 'a longer name', text: `0::/kubepods/pod${uid}0/ab` },
    { what: 'no UID asked for', text: '0::/kubepods/pod/ab', asked: '' },
  ])('but not by $what', ({ text, asked = uid }) => {
    expect(isOfPod(text, asked)).toBe(false);
  });

  test('its start is read behind a command name with blanks and brackets; a zombie has none', () => {
    const fields = Array.from({ length: 40 }, (_, index) => index + 4).join(' ');
    expect(startTime(`7 (a) b (c)) S ${fields}`)).toBe('22');
    expect(startTime(`7 (a) Z ${fields}`)).toBeUndefined();
  });
});

describe('looking for it', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(path.join(os.tmpdir(), 'isthmus-proc-'));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  /** A process as /proc shows it. */
  function place(pid: number, { started = '100', keys = true, of = uid, runs = 'wireguard-go' } = {}): void {
    const dir = path.join(root, String(pid));
    mkdirSync(path.join(dir, 'root/keys'), { recursive: true });
    if (keys) writeFileSync(path.join(dir, 'root/keys/privateKey'), '');
    writeFileSync(path.join(dir, 'cgroup'), `0::/kubepods/pod${of}/c\n`);
    const fields = Array.from({ length: 40 }, (_, index) => (index === 18 ? started : '0')).join(' ');
    writeFileSync(path.join(dir, 'stat'), `${pid} (${runs}) S ${fields}\n`);
  }
  const finder = () => createProcessFinder({ root, holds: 'keys/privateKey' });

  test('picks the first process of the container that holds the keys', () => {
    place(30, { keys: false });
    place(31, { of: other });
    place(33);
    place(40);
    expect(finder().find(uid)).toEqual({ pid: 33, startTime: '100', command: 'wireguard-go' });
  });

  test('what the runtime has not turned into the container yet is not the container', () => {
    place(33, { runs: 'runc:[2:INIT]' });
    expect(finder().find(uid)).toBeUndefined();
    place(33, { runs: 'sleep' });
    const found = finder().find(uid);
    expect(found?.command).toBe('sleep');
    place(33, { runs: 'wireguard-go' });
    expect(finder().isAlive(found!)).toBe(false);
  });

  test('a process ID that was given away is not taken for the old process', () => {
    place(33);
    const found = finder().find(uid);
    expect(finder().isAlive(found!)).toBe(true);
    place(33, { started: '200' });
    expect(finder().isAlive(found!)).toBe(false);
  });

  test('a process is missed soon after its end, and one in its place a little later', async () => {
    const clock = new ManualClock();
    place(33);
    const found = finder().find(uid)!;
    let looks = 0;
    const processes = {
      exists: (process: PodProcess) => finder().exists(process),
      isAlive: (process: PodProcess) => {
        looks += 1;
        return finder().isAlive(process);
      },
    };
    const missedAfter = async (happens: () => void, most: number): Promise<number> => {
      let ended = false;
      const waiting = untilEnded({ clock, processes }, found, new AbortController().signal).then(() => {
        ended = true;
      });
      clock.advance(150);
      happens();
      let ms = 0;
      for (; !ended && ms <= most; ms += 50) {
        clock.advance(50);
        await Promise.resolve();
      }
      expect(ended).toBe(true);
      return waiting.then(() => ms);
    };
    expect(await missedAfter(() => rmSync(path.join(root, '33'), { recursive: true }), 300)).toBeLessThanOrEqual(200);
    place(33);
    looks = 0;
    expect(await missedAfter(() => place(33, { started: '200' }), 2_000)).toBeLessThanOrEqual(1_000);
    expect(looks).toBe(2);
    expect(clock.sleeping).toBe(0);
  });

  test('polling ends with the signal', async () => {
    const clock = new ManualClock();
    place(33);
    const stop = new AbortController();
    const waiting = untilEnded({ clock, processes: finder() }, finder().find(uid)!, stop.signal);
    clock.advance(1_000);
    expect(clock.sleeping).toBe(1);
    stop.abort();
    await waiting;
    expect(clock.sleeping).toBe(0);
  });

  test('processes that vanish while looking are passed over', () => {
    mkdirSync(path.join(root, '5'));
    symlinkSync('/nowhere', path.join(root, '5/cgroup'));
    expect(finder().find(uid)).toBeUndefined();
  });

  test('a real process that ends is seen to end', async () => {
    const child = spawn('sleep', ['60']);
    const real = createProcessFinder({ holds: 'bin' });
    const own = {
      pid: child.pid!,
      command: 'sleep',
      startTime: startTime(await import('node:fs').then((fs) => fs.readFileSync(`/proc/${child.pid}/stat`, 'utf8')))!,
    };
    expect(real.isAlive(own)).toBe(true);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
    expect(real.isAlive(own)).toBe(false);
  });
});
