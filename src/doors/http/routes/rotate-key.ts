/** A new data key for what is sealed from now on. What was sealed before stays as it is, under the key that it names. */
import { z } from 'zod';
import type { App, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { problems } from '../schemas.ts';

const reply = z
  .object({
    active_key: z.int().describe('number of the data key that is in use from now on'),
    previous_key: z.int(),
    keys: z.int().describe('data keys that are there, each for what was sealed under it'),
    rotated_at: z.string(),
  })
  .meta({ id: 'KeyRotation' });

/** POST /admin/rotate-dek. */
export function registerRotateKey(app: App, context: HttpContext): void {
  app.route({
    method: 'POST',
    url: '/admin/rotate-dek',
    config: { access: 'admin', action: 'administer' },
    schema: {
      summary: 'Put a new data key into use',
      tags: ['system'],
      body: z.strictObject({}).nullish(),
      response: { 200: reply, ...problems },
    },
    handler: (request) =>
      invoke(context, request, 'administer', undefined, async (invocation) => {
        const { activeKey, previousKey, keys, rotatedAt } = await context.system.rotateDataKey();
        invocation.describe({ template: 'rotate data key ?', literals: [String(activeKey)] });
        return { active_key: activeKey, previous_key: previousKey, keys, rotated_at: rotatedAt };
      }),
  });
}
