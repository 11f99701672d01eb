import { api, takeAll, takePage } from './client';
import type { Container } from './types';

/**
 * All containers of a server, newest first. A new one moves the others on, so a page may begin with what is there already. One that is
 * removed during that time moves them back, and the one at the border may be missing until the next reading.
 */
export async function allContainers(serverId: string): Promise<Container[]> {
  const path = { server_id: serverId };
  const found = await takeAll((offset, limit) =>
    takePage(api.GET('/api/v1/docker/{server_id}/containers', { params: { path, query: { limit, offset } } })),
  );
  return [...new Map(found.map((one) => [one.id, one])).values()];
}
