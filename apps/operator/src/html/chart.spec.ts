import { chart } from './chart';
import { number } from './format';

const of = (points: number[]) => chart({ title: 'Failed', points, format: number }).text;

it('tells zero from what is not known', () => {
  expect(of([NaN, 0, 0])).toContain('aria-label="Failed: now 0, at most 0 in ten minutes"');
  expect(of([NaN, 0, 0])).toContain('>highest: 0<');
  for (const points of [[], [NaN, NaN]]) {
    expect(of(points)).toContain('aria-label="Failed: now –, no value in ten minutes"');
    expect(of(points)).toContain('>no value in ten minutes<');
  }
});
