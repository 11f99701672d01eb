// A made-up fleet: what the service would say of it over REST and `/ws/fleet`, for measurements and for pictures.

const MINUTE = 60;
const HOUR = 60 * MINUTE;

/** Numbers that look like chance, the same in every run. */
export function chance(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const id = (index) => `019aa0b8-7d1c-7e3a-9c61-${index.toString(16).padStart(12, '0')}`;
const iso = (seconds) => new Date(seconds * 1000).toISOString();
const hundredths = (value) => Math.round(value * 100) / 100;

/** `count` servers. Every `offlineEach`th is offline and every `pendingEach`th was never seen; 0: none is. */
export class World {
  constructor({ count, seed = 1, offlineEach = 0, pendingEach = 0, names = (index) => `server-${index + 1}`, now }) {
    this.random = chance(seed);
    this.now = now ?? Date.now() / 1000;
    this.servers = Array.from({ length: count }, (_, index) => {
      const status =
        pendingEach && index % pendingEach === pendingEach - 1
          ? 'pending'
          : offlineEach && index % offlineEach === offlineEach - 1
            ? 'offline'
            : 'online';
      return this.#server(index, names(index), status);
    });
    this.readings = this.servers.map((server, index) => this.#reading(server, index));
  }

  #server(index, name, status) {
    const created = iso(this.now - 30 * 24 * HOUR);
    const seen = status === 'pending' ? null : iso(this.now - (status === 'offline' ? 190 * (index + 1) : 1));
    return {
      id: id(index),
      name,
      host: `192.0.2.${index % 255}`,
      port: 22,
      status,
      description: '',
      tags: [['production', 'staging', 'lab'][index % 3], ['eu', 'us'][index % 2]],
      owner: { id: id(1), username: 'demo' },
      role: 'owner',
      rights: ['containers', 'commands', 'logs', 'terminal'],
      last_seen_at: seen,
      agent:
        status === 'pending'
          ? null
          : {
              version: '0.1.0',
              hostname: name,
              os: 'Debian GNU/Linux 12',
              kernel: '6.1.0',
              arch: 'x86_64',
              cpu_count: 8,
              capabilities: ['metrics'],
              connected_at: created,
              clock_offset_ms: 0,
            },
      created_at: created,
      updated_at: created,
    };
  }

  #reading(server, index) {
    const isKnown = server.status !== 'pending';
    const level = this.random();
    return {
      server_id: server.id,
      status: server.status,
      last_seen_at: server.last_seen_at,
      timestamp: server.last_seen_at,
      cpu_percent: isKnown ? hundredths(3 + level * level * 70) : null,
      memory_percent: isKnown ? hundredths(20 + this.random() * 60) : null,
      disk_percent: isKnown ? hundredths(10 + this.random() * 75) : null,
      load_1: isKnown ? hundredths(level * 6) : null,
      network_in: isKnown ? Math.round(this.random() ** 3 * 4e7) : null,
      network_out: isKnown ? Math.round(this.random() ** 3 * 2e7) : null,
      uptime_seconds: isKnown ? Math.round(this.random() * 90 * 24 * HOUR) : null,
      containers: isKnown && index % 4 === 0 ? Math.ceil(this.random() * 12) : null,
    };
  }

  /** Lets `seconds` pass: every number of the servers that are online changes. Returns the message. */
  step(seconds = 1) {
    this.now += seconds;
    const changed = this.readings.filter((reading) => reading.status === 'online');
    const walk = (value, by, most = 100) => hundredths(Math.max(0, Math.min(most, value + (this.random() - 0.5) * by)));
    for (const reading of changed) {
      reading.last_seen_at = reading.timestamp = iso(this.now);
      reading.cpu_percent = walk(reading.cpu_percent, 12);
      reading.memory_percent = walk(reading.memory_percent, 2);
      reading.load_1 = walk(reading.load_1, 0.3, 64);
      reading.network_in = Math.round(this.random() ** 3 * 4e7);
      reading.network_out = Math.round(this.random() ** 3 * 2e7);
      reading.uptime_seconds += seconds;
    }
    return { type: 'fleet', data: { servers: changed } };
  }

  /** What the socket says first. */
  first() {
    return { type: 'fleet', data: { servers: this.readings } };
  }

  /** The last hour of each server, as `GET /metrics/fleet` tells it. Some have a gap. */
  courses() {
    const begin = Math.floor(this.now / MINUTE) * MINUTE - HOUR;
    return this.readings
      .filter((reading) => reading.timestamp !== null)
      .map((reading, index) => {
        const end = reading.status === 'online' ? this.now : this.now - 20 * MINUTE;
        const timestamps = [];
        for (let at = begin; at <= end; at += MINUTE) {
          const minute = (at - begin) / MINUTE;
          if (index % 5 !== 3 || minute < 22 || minute > 30) timestamps.push(at);
        }
        let value = reading.cpu_percent;
        const avg = timestamps.map(
          () => (value = hundredths(Math.max(1, Math.min(99, value + (this.random() - 0.5) * 14)))),
        );
        let share = reading.memory_percent;
        const memory = timestamps.map(
          () => (share = hundredths(Math.max(1, Math.min(99, share + (this.random() - 0.5) * 2)))),
        );
        const used = memory.map((percent) => Math.round((percent / 100) * 2 ** (33 + (index % 4))));
        return {
          server_id: reading.server_id,
          resolution_seconds: MINUTE,
          timestamps,
          series: {
            cpu_percent: { avg, min: avg, max: avg },
            memory_percent: { avg: memory, min: memory, max: memory },
            memory_used: { avg: used, min: used, max: used },
          },
        };
      });
  }

  /** The last day of some servers, as `GET /servers/availability` tells it. Some had an outage. */
  bars(ids) {
    const width = HOUR / 2;
    const start = (Math.floor(this.now / width) + 1 - 48) * width;
    return this.servers
      .map((server, index) => ({ server, index }))
      .filter(({ server }) => ids.includes(server.id))
      .map(({ server, index }) => {
        const beats = Array.from({ length: 48 }, (_, part) => {
          if (server.status === 'pending' || (index % 9 === 5 && part < 14)) return 'unknown';
          if (index % 6 === 4 && part >= 20 && part < 20 + (index % 5)) return part === 20 ? 'partly' : 'offline';
          if (index % 11 === 7 && part % 9 === 3) return 'partly';
          return server.status === 'offline' && part > 45 ? 'offline' : 'online';
        });
        const outages = beats.flatMap((beat, part) =>
          beat === 'offline' || beat === 'partly'
            ? [
                {
                  start: iso(start + part * width + 300),
                  end: iso(start + part * width + 900),
                  reason: 'silent',
                  ongoing: server.status === 'offline' && part === 47,
                },
              ]
            : [],
        );
        return {
          server_id: server.id,
          start: iso(start),
          beat_seconds: width,
          beats,
          uptime_percent: server.status === 'pending' ? null : 100 - outages.length,
          outage_count: outages.length,
          outages,
        };
      });
  }

  /** An open alert of a server. */
  alert(index, severity, message, secondsAgo, status = 'active') {
    return {
      id: id(900_000 + index * 10 + secondsAgo),
      threshold_id: id(800_000 + index),
      server_id: id(index),
      metric_type: 'cpu',
      target: null,
      threshold_value: 90,
      comparison: 'gt',
      duration_seconds: 0,
      clear_value: null,
      value: 95,
      peak_value: 98,
      status,
      severity,
      silenced: false,
      message,
      triggered_at: iso(this.now - secondsAgo),
      acknowledged_at: null,
      acknowledged_by: null,
      resolved_at: null,
      resolved_by: null,
    };
  }
}

const claims = (text) => Buffer.from(JSON.stringify(text)).toString('base64url');

/**
 * Makes a page see a world instead of a service. Returns its `/ws/fleet`. Without `hasSockets` these are somebody else's.
 */
export async function show(page, world, { alerts = [], origin, hasSockets = true }) {
  const at = Math.floor(Date.now() / 1000);
  const token = `x.${claims({ iat: at, exp: at + 24 * HOUR })}.x`;
  const fleet = { socket: null, send: (message) => fleet.socket?.send(JSON.stringify(message)), onOpen: () => {} };
  const list = (items, url) => {
    const offset = Number(url.searchParams.get('offset') ?? 0);
    const limit = Number(url.searchParams.get('limit') ?? 100);
    return { json: items.slice(offset, offset + limit), headers: { 'x-total-count': String(items.length) } };
  };
  await page.route(`${origin}/api/v1/**`, (route) => {
    const url = new URL(route.request().url());
    switch (url.pathname) {
      case '/api/v1/auth/refresh':
        return route.fulfill({ json: { access_token: token, refresh_token: '', token_type: 'bearer' } });
      case '/api/v1/auth/me':
        return route.fulfill({ json: { id: id(1), email: 'demo@example.org', username: 'demo', full_name: 'Demo' } });
      case '/api/v1/servers':
        return route.fulfill(list(world.servers, url));
      case '/api/v1/metrics/fleet':
        return route.fulfill(list(world.courses(), url));
      case '/api/v1/servers/availability':
        return route.fulfill({ json: world.bars((url.searchParams.get('ids') ?? '').split(',')) });
      case '/api/v1/service':
        return route.fulfill({ json: { version: '0.1.0', started_at: iso(world.startedAt ?? world.now - 24 * HOUR) } });
      default:
        return route.fulfill({ status: 404, json: { detail: 'not found', status_code: 404, code: 'not_found' } });
    }
  });
  if (!hasSockets) return fleet;
  await page.routeWebSocket(/\/ws\/alerts$/, (socket) => {
    for (const alert of alerts) socket.send(JSON.stringify({ type: 'alert', data: alert }));
    socket.onMessage(() => socket.send('{"type":"pong"}'));
  });
  await page.routeWebSocket(/\/ws\/fleet$/, (socket) => {
    fleet.socket = socket;
    fleet.send(world.first());
    fleet.onOpen();
  });
  return fleet;
}
