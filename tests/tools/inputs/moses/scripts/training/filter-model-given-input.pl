# Stands in for Moses' script of that name: its folder, with the ini as it came.
mkdir $ARGV[0];
open(my $in, "<", $ARGV[1]);
open(my $out, ">", "$ARGV[0]/moses.ini");
print $out $_ while <$in>;
