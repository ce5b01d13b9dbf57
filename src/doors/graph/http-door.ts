/** The graph door over HTTP, as Neo4j speaks it. Source: specification, "Compatibility doors". */
import type { Door } from '../door.ts';
import { createHttpListener } from '../shared/http-listener.ts';
import { bodyBytesMax, doorName, type GraphHttpOptions, GraphRequest } from './http-request.ts';

export function createGraphHttpDoor(doorOptions: GraphHttpOptions): Door {
  const { settings: doorSettings } = doorOptions;
  const graphListener = {
    ...doorOptions,
    name: doorName,
    setting: 'SERVICE_GRAPH_HTTP_PORT',
    port: doorSettings.SERVICE_GRAPH_HTTP_PORT,
    drainMs: doorSettings.SERVICE_DRAIN_TIMEOUT_SECS * 1000,
    bodyBytesMax,
  } as const;
  return createHttpListener(graphListener, (httpRoom) => {
    const graphParts = { ...doorOptions, ...httpRoom };
    return { answer: (raw, response, waits) => new GraphRequest(graphParts, raw, response, waits).run() };
  });
}
