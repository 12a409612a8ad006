import { Injectable, type ArgumentMetadata, type PipeTransform } from '@nestjs/common';
import type { BodyClass } from '@app/contracts/message';
import { validateBody } from '@app/contracts/validate';

const NOT_CONTRACTS = new Set<unknown>([undefined, Object, Array, String, Number, Boolean]);

/**
 * Validates the `@Payload()` of every handler against its contract class: every message is untrusted input.
 *
 * @throws ApiError INVALID_ARGUMENT when the body is invalid; a plain Error when the parameter has no contract class, which is a bug
 */
@Injectable()
export class ContractPipe implements PipeTransform {
  transform(value: unknown, { type, metatype }: ArgumentMetadata): unknown {
    if (type !== 'body') return value;
    if (NOT_CONTRACTS.has(metatype)) throw new Error('The @Payload() of a handler must have a contract class as its type.');
    return validateBody(metatype as BodyClass<object>, value);
  }
}
