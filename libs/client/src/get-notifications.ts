import type { FILTER_COMBINATIONS, GetNotificationsRequest } from '@app/contracts/notifications.get';

type Combination = (typeof FILTER_COMBINATIONS)[number];
type Filter = Combination[number];

type With<Given extends Filter> = Omit<GetNotificationsRequest, Filter> &
  Required<Pick<GetNotificationsRequest, Given>> & { [Name in Exclude<Filter, Given>]?: undefined };

type Each<One> = One extends Combination ? With<One[number]> : never;

/** A request with one of the supported combinations of filters: the service refuses every other one. */
export type FilteredRequest = Each<Combination>;
