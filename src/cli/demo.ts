/** `annals demo`: `annals serve` in demonstration mode, with an admin credential of its own where none is set. */
import { systemRandom } from '../clock.ts';
import { type ServeOptions, serveCommand } from './serve.ts';

/** Server and cluster are only labelled by SERVICE_DEMO_MODE; nothing is ever written into a store that holds rows. */
export async function demoCommand(serveOptions: ServeOptions, version: string): Promise<number> {
  process.env['SERVICE_DEMO_MODE'] = 'true';
  process.env['SERVICE_ADMIN_TOKEN'] ??= Buffer.from(systemRandom.fill(new Uint8Array(24))).toString('base64url');
  return serveCommand(serveOptions, version);
}
