import { createServer } from 'node:net';

/**
 * Below the ports that systems hand out by themselves: whoever listens on one of those, beside us and later, takes none of
 * these before its server has begun to listen.
 */
const first = 16_000;
const count = 16_000;
let tried = (process.pid * 7_919) % count;

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = first + (tried++ % count);
    const isFree = await new Promise<boolean>((resolve) => {
      const server = createServer().once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}
