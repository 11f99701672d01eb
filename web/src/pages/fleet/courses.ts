// The last hour of CPU of all servers: from the history first, then from what the socket tells.
import { api, takeAll, takePage } from '../../api/client';
import { failureOf, type Failure } from '../../api/failure';
import { Course, type Columns } from '../../charts/sparklineCourse';
import { fleet, type Reading } from '../../live/fleet.svelte';

const NAME = 'cpu_percent';

class Courses {
  #courses = new Map<string, Course>();
  #seen = new Map<string, string>();

  /** Of a server. There is one as soon as somebody asks. */
  of(id: string): Course {
    let course = this.#courses.get(id);
    if (!course) this.#courses.set(id, (course = new Course()));
    return course;
  }

  /** Follows until what it gives is called. */
  watch(): () => void {
    const stop = fleet.onReadings((readings) => this.#told(readings));
    return () => {
      stop();
      this.#courses.clear();
      this.#seen.clear();
    };
  }

  /** Reads the history. Returns why it could not, or null. */
  async load(): Promise<Failure | null> {
    try {
      const all = await takeAll((offset, limit) =>
        takePage(
          api.GET('/api/v1/metrics/fleet', { params: { query: { names: NAME, max_points: 60, limit, offset } } }),
        ),
      );
      for (const { server_id, resolution_seconds, timestamps, series } of all) {
        const avg = series[NAME]?.avg;
        if (avg) this.of(server_id).fill({ resolution_seconds, timestamps, avg } satisfies Columns);
      }
      return null;
    } catch (error) {
      return failureOf(error);
    }
  }

  #told(readings: Reading[]): void {
    for (const { server_id: id, timestamp, cpu_percent: value } of readings) {
      // The same sample comes again when the status alone has changed.
      if (timestamp === null || value === null || this.#seen.get(id) === timestamp) continue;
      this.#seen.set(id, timestamp);
      const course = this.of(id);
      const interval = fleet.row(id)?.intervalMs;
      if (interval) course.intervalSeconds = interval / 1000;
      course.add(Date.parse(timestamp) / 1000, value);
    }
  }
}

export const courses = new Courses();
