import type { Page } from '@playwright/test';

/** One sample of an agent that the test makes up: how long ago it was measured, and what it says. */
export interface Measured {
  secondsAgo: number;
  cpu: number;
}

/** Samples each so many seconds, from one time ago until another. */
export function every(step: number, from: number, to: number, cpu = 20): Measured[] {
  return Array.from({ length: Math.floor((from - to) / step) + 1 }, (_, place) => ({
    secondsAgo: from - place * step,
    cpu: cpu + (place % 7),
  }));
}

/**
 * An agent in a page of its own that brings what it measured before, as one does that was away, and continues each second.
 * The real one measures what this machine has, and only now.
 */
export async function startMeasured(page: Page, key: string, past: Measured[]): Promise<void> {
  await page.goto('/healthz');
  await page.evaluate(
    async ({ key, past }) => {
      const socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/api/v1/agents/ws`);
      await new Promise((opened, failed) => {
        socket.onopen = opened;
        socket.onerror = failed;
      });
      const send = (type: string, data: unknown) => socket.send(JSON.stringify({ type, data }));
      const agent = { version: '1.0.0', hostname: 'past', os: 'Debian', kernel: '6.1', arch: 'x86_64', cpu_count: 2 };
      const auth = { api_key: key, protocol: 1, sample_interval_seconds: 5 };
      send('auth', {
        ...auth,
        agent: { ...agent, boot_id: 'b', machine_id: '', capabilities: ['metrics', 'processes'] },
      });
      await new Promise((answered) => (socket.onmessage = answered));
      const began = Date.now();
      // 200 B/s in the past, 1,000 B/s now, however late the timer of a page in the background is.
      let received = 0;
      let before = began;
      const sample = (at: number, cpu_percent: number) => {
        received += at > began ? at - before : 1_000;
        before = at;
        const used = { cpu_percent, memory_percent: 10, memory_total: 1e9, memory_used: 1e8 };
        const network = [{ interface: 'eth0', bytes_recv: received, bytes_sent: received }];
        // It runs for longer than any chart of a test shows.
        const uptime_seconds = 30 * 86_400 + Math.round((at - began) / 1000);
        return { timestamp: new Date(at).toISOString(), ...used, uptime_seconds, disk_usage: [], network };
      };
      let seq = 0;
      const samples = past.map(({ secondsAgo, cpu }) => sample(began - secondsAgo * 1000, cpu));
      for (let first = 0; first < samples.length; first += 50) {
        seq += 1;
        send('metrics', { seq, samples: samples.slice(first, first + 50) });
      }
      const tell = () => {
        seq += 1;
        send('metrics', { seq, samples: [sample(Math.max(Date.now(), began + 1), 30)] });
      };
      tell();
      // A page that is opened now finds all of it.
      await new Promise<void>((stored) => {
        socket.onmessage = ({ data }) => {
          const { type, data: ack } = JSON.parse(String(data)) as { type: string; data?: { seq?: number } };
          if (type === 'ack' && (ack?.seq ?? 0) >= seq) stored();
        };
      });
      setInterval(tell, 1_000);
    },
    { key, past },
  );
}
