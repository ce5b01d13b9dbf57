/** The columnar door over HTTP: ClickHouse's interface. Source: specification, "Compatibility doors" and "Door details". */
import type { Door } from '../door.ts';
import { createHttpListener } from '../shared/http-listener.ts';
import { type ColumnarHttpOptions, doorName, ColumnarHttpRequest, statementBytesMax } from './http-request.ts';
import { HttpSessions } from './http-sessions.ts';
import { RunningQueries } from './running-queries.ts';

export function createColumnarHttpDoor(options: ColumnarHttpOptions): Door {
  const { settings, clock } = options;
  const listener = {
    ...options,
    name: doorName,
    setting: 'SERVICE_COLUMNAR_HTTP_PORT',
    port: settings.SERVICE_COLUMNAR_HTTP_PORT,
    drainMs: settings.SERVICE_DRAIN_TIMEOUT_SECS * 1000,
    bodyBytesMax: statementBytesMax,
  } as const;
  return createHttpListener(listener, (room) => {
    const bodyLimitBytes = settings.SERVICE_BODY_LIMIT_MB << 20;
    const parts = { ...options, ...room, sessions: new HttpSessions(clock), running: new RunningQueries(), bodyLimitBytes };
    return { answer: (raw, response, waits) => new ColumnarHttpRequest(parts, raw, response, waits).run() };
  });
}
