"""What mechanisms that look at the data plan in public: buckets, blocks of the plane, truncated sums."""
