/** Events of a standing query as server-sent events. */
import type { WatchEvent } from '../../planner/continuous/watch/watch-events.ts';

/** The first line of a stream: how long clients wait before they connect again. */
export const retryLine = 'retry: 1000\n\n';

export const eventText = ({ event: sseEvent, id: sseId, data: sseData }: WatchEvent): string =>
  `${sseId === null ? '' : `id: ${sseId}\n`}event: ${sseEvent}\ndata: ${sseData}\n\n`;
