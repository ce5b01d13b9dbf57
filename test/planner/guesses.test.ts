/** Errors name what was probably meant, of what the asker may see. */
import { expect, test } from 'vitest';
import { didYouMean } from '../../src/errors.ts';

test('a name is guessed from those that are a slip away', () => {
  expect(didYouMean('deal', ['Order', 'Deal'])).toBe(' (did you mean Deal?)');
  expect(didYouMean('Titel', ['Title', 'Text'])).toBe(' (did you mean Title?)');
  expect(didYouMean('idd', ['id', '_pk'])).toBe(' (did you mean id?)');
  expect(didYouMean('PAGERANK', ['LINK_PREDICT', 'GRAPH_PAGERANK'])).toBe(' (did you mean GRAPH_PAGERANK?)');
  expect(didYouMean('Ship', ['Boat', 'Crane'])).toBe('');
  expect(didYouMean('x'.repeat(200), ['x'.repeat(199)])).toBe('');
});
