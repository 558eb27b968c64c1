// Package bucket is a flat store of objects, such as an S3 bucket, and what the packages of the store share: keys that
// lead to no other object, errors with a code, objects of the service as a whole that are sealed or have a MAC, and
// lists whose memory is bounded. It knows no stack.
package bucket
