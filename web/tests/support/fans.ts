import type { Page } from '@playwright/test';

/** An agent with two fans, which lives in a page of its own: the real one measures what this machine has. */
export async function startFans(page: Page, key: string): Promise<void> {
  await page.goto('/healthz');
  await page.evaluate(async (key) => {
    const socket = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/api/v1/agents/ws`);
    await new Promise((opened, failed) => {
      socket.onopen = opened;
      socket.onerror = failed;
    });
    const send = (type: string, data: unknown) => socket.send(JSON.stringify({ type, data }));
    const agent = { version: '1.0.0', hostname: 'fans', os: 'Debian', kernel: '6.1', arch: 'x86_64', cpu_count: 2 };
    const auth = { api_key: key, protocol: 1, sample_interval_seconds: 1 };
    send('auth', { ...auth, agent: { ...agent, boot_id: 'b', machine_id: '', capabilities: ['metrics'] } });
    await new Promise((answered) => (socket.onmessage = answered));
    const fan = { name: 'fan_speed', unit: 'rpm', kind: 'gauge', help: 'How fast a fan turns.' };
    const load = { id: 3, name: 'queue_length', unit: 'count', kind: 'gauge', help: 'Mails that wait.' };
    send('series', { series: [{ ...fan, id: 1, target: 'cpu' }, { ...fan, id: 2, target: 'case' }, load] });
    let seq = 0;
    const tell = () => {
      seq += 1;
      const used = { cpu_percent: 5, memory_percent: 10, memory_total: 1e9, memory_used: 1e8 };
      const values = [
        [1, 1_180],
        [2, 620],
        [3, seq],
      ];
      const sample = { timestamp: new Date().toISOString(), ...used, disk_usage: [], network: [], values };
      send('metrics', { seq, samples: [sample] });
    };
    tell();
    setInterval(tell, 1_000);
  }, key);
}
