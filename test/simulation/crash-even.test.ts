/** The other half of what crash.test.ts goes through. */
import { it } from 'vitest';
import { expectNoLoss } from './crash-states.ts';

it('opens with all that was acknowledged and nothing that was refused: even seeds', { timeout: 900_000 }, () => expectNoLoss(0));
