/** The graph door over HTTP, as Neo4j speaks it. Source: specification, "Compatibility doors". */
import type { Door } from '../door.ts';
import { createHttpListener } from '../shared/http-listener.ts';
import { bodyBytesMax, doorName, type GraphHttpOptions, GraphRequest } from './http-request.ts';

export function createGraphHttpDoor(options: GraphHttpOptions): Door {
  const { settings } = options;
  const listener = {
    ...options,
    name: doorName,
    setting: 'SERVICE_GRAPH_HTTP_PORT',
    port: settings.SERVICE_GRAPH_HTTP_PORT,
    drainMs: settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000,
    bodyBytesMax,
  } as const;
  return createHttpListener(listener, (room) => {
    const parts = { ...options, ...room };
    return { answer: (raw, response, waits) => new GraphRequest(parts, raw, response, waits).run() };
  });
}
