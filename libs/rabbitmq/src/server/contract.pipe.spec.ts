import { AddUsersRequest } from '@app/contracts/users.add';
import { ApiError } from '@app/contracts/error';
import { ContractPipe } from './contract.pipe';

describe('ContractPipe', () => {
  const pipe = new ContractPipe();
  const body = { organizationId: 'o', users: [{ userId: 'u' }] };

  it('makes an instance of the contract class', () => {
    expect(pipe.transform(body, { type: 'body', metatype: AddUsersRequest })).toBeInstanceOf(AddUsersRequest);
  });

  it('refuses a body that breaks the contract', () => {
    expect(() => pipe.transform({}, { type: 'body', metatype: AddUsersRequest })).toThrow(ApiError);
  });

  it('lets other parameters through', () => {
    expect(pipe.transform(5, { type: 'custom', metatype: Number })).toBe(5);
  });

  // The compiler emits these for an interface and for a class that is imported with `import type`.
  it.each([undefined, Object])('never lets a body through unchecked: %p', (metatype) => {
    expect(() => pipe.transform(body, { type: 'body', metatype })).toThrow('must have a contract class');
  });
});
