/** The columnar door over HTTP: ClickHouse's interface. Source: specification, "Compatibility doors" and "Door details". */
import type { Door } from '../door.ts';
import { createHttpListener } from '../shared/http-listener.ts';
import { type ColumnarHttpOptions, doorName, ColumnarHttpRequest, statementBytesMax } from './http-request.ts';
import { HttpSessions } from './http-sessions.ts';
import { RunningQueries } from './running-queries.ts';

export function createColumnarHttpDoor(doorOptions: ColumnarHttpOptions): Door {
  const { settings: doorSettings, clock } = doorOptions;
  const columnarListener = {
    ...doorOptions,
    name: doorName,
    setting: 'SERVICE_COLUMNAR_HTTP_PORT',
    port: doorSettings.SERVICE_COLUMNAR_HTTP_PORT,
    drainMs: doorSettings.SERVICE_DRAIN_TIMEOUT_SECS * 1000,
    bodyBytesMax: statementBytesMax,
  } as const;
  return createHttpListener(columnarListener, (httpRoom) => {
    const bodyLimitBytes = doorSettings.SERVICE_BODY_LIMIT_MB << 20;
    const columnarParts = {
      ...doorOptions,
      ...httpRoom,
      sessions: new HttpSessions(clock),
      running: new RunningQueries(),
      bodyLimitBytes,
    };
    return { answer: (raw, response, waits) => new ColumnarHttpRequest(columnarParts, raw, response, waits).run() };
  });
}
